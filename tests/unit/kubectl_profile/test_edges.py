"""The edge of a window: the first page that has changed, and all of it. The engine is a list of pages."""

from collections.abc import Sequence

import pytest

from kubectl_dsd.profile import engines
from kubectl_dsd.profile.engines import Engine
from kubectl_dsd.top.reading import BATCH_COUNT, STEPS


def page(steps: int, batches: int) -> str:
    """Counters of so many steps, histograms of so many."""
    return f"""# TYPE dsd_steps_total counter
dsd_steps_total{{k="2",concurrency="1"}} {steps}
# TYPE dsd_step_batch_size histogram
dsd_step_batch_size_bucket{{le="+Inf"}} {batches}
dsd_step_batch_size_count {batches}
dsd_step_batch_size_sum {batches}
"""


def engine(pages: Sequence[tuple[int, int]]) -> Engine:
    """Gives these pages in turn, and then the last one."""
    left = list(pages)
    return Engine("pod", "", 1, lambda: page(*(left.pop(0) if len(left) > 1 else left[0])))


@pytest.mark.parametrize(
    "pages",
    [
        [(4, 4), (4, 4), (9, 9)],
        [(4, 4), (9, 4), (9, 9)],
        [(4, 4), (4, 9), (9, 9)],
        [(9, 4), (9, 9), (12, 9), (12, 12)],
    ],
    ids=["nothing-yet", "counters-first", "histograms-first", "begins-in-between"],
)
def test_the_first_page_of_which_all_has_changed(pages: list[tuple[int, int]]) -> None:
    found = engine(pages).edge()
    assert (found.total(STEPS), found.total(BATCH_COUNT)) == pages[-1]


@pytest.mark.parametrize("last", [(4, 4), (9, 4)], ids=["an-idle-engine", "never-whole"])
def test_it_is_not_waited_for_for_ever(last: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "EDGE_DEADLINE", 0.05)
    found = engine([(4, 4), last]).edge()
    assert (found.total(STEPS), found.total(BATCH_COUNT)) == last
