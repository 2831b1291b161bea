"""A window's sample and what is odd about it, from counters made by hand."""

from typing import Final

import pytest

from kubectl_dsd.profile.plan import Cell
from kubectl_dsd.profile.window import Window, sample
from kubectl_dsd.top.reading import Growth, Labels

CELL: Final = Cell(0, 4, 3)


def growth(
    steps: float = 100, emitted: float = 1000, k: str = "3", batch: float = 4.0, seconds: float = 10.0
) -> Growth:
    """What one engine counted: half of the drafts accepted, priced steps of 50 ms."""
    labels: Labels = (("concurrency", "4"), ("k", k))
    return Growth(
        seconds,
        {
            "dsd_steps_total": {labels: steps},
            "dsd_emitted_tokens_total": {labels: emitted},
            "dsd_draft_tokens_total": {labels: 600},
            "dsd_accepted_tokens_total": {labels: 300},
            "dsd_step_batch_size_sum": {(): batch * steps},
            "dsd_step_duration_seconds_sum": {(("k", k),): steps * 0.05},
            "dsd_step_duration_seconds_count": {(("k", k),): steps},
        },
    )


def kinds(window: Window) -> list[str]:
    """Kinds of what is odd."""
    return [remark.kind for remark in sample(window).remarks]


def test_a_clean_window() -> None:
    found = sample(Window(CELL, [growth()], engines=1, client_tokens=1000))

    assert found.tokens_per_second == 100
    assert found.rates.tokens_per_request == 2.5
    assert found.rates.acceptance == 0.5
    assert found.step_milliseconds == pytest.approx(50)
    assert found.at_k == 1
    assert found.remarks == ()


def test_the_rate_is_that_of_one_engine_core() -> None:
    found = sample(Window(CELL, [growth(), growth()], engines=2, client_tokens=2000))

    assert found.tokens_per_second == 100
    assert found.remarks == ()


@pytest.mark.parametrize("tokens", [800, 1200])
def test_clients_that_count_otherwise_are_told(tokens: int) -> None:
    assert kinds(Window(CELL, [growth()], engines=1, client_tokens=tokens)) == ["clients"]


def test_the_edges_of_a_short_window_are_none_of_that() -> None:
    assert kinds(Window(CELL, [growth(seconds=1.0)], engines=1, client_tokens=800)) == []


def test_larger_batches_than_ours_are_shared_load() -> None:
    assert kinds(Window(CELL, [growth(batch=4.3)], engines=1, client_tokens=1000)) == ["shared"]


def test_smaller_batches_are_told() -> None:
    assert kinds(Window(CELL, [growth(batch=2)], engines=1, client_tokens=1000)) == ["batch"]


def test_another_k_than_the_one_that_was_set_is_told() -> None:
    assert kinds(Window(CELL, [growth(k="1")], engines=1, client_tokens=1000)) == ["k"]


def test_no_token_is_no_sample() -> None:
    with pytest.raises(ValueError, match="no token"):
        sample(Window(CELL, [growth(emitted=0)], engines=1, client_tokens=0))
