"""Readings of /metrics and what grows between them, with numbers made by hand."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dsd.top.rates import combined
from kubectl_dsd.top.reading import EMITTED, K_NOW, REVISION, RUNNING, STEPS, growth, read

LABELS = 'engine="0",model_name="m"'


def page(**counts: float) -> str:
    """A page with one cell of counters; steps of 4 requests."""
    steps, emitted = counts.get("steps", 0), counts.get("emitted", 0)
    drafted, accepted = counts.get("drafted", 0), counts.get("accepted", 0)
    cell = f'{{{LABELS},k="3",concurrency="4"}}'
    return f"""
# HELP python_info Something that is not ours.
# TYPE python_info gauge
python_info{{version="3"}} 1.0
# TYPE dsd_steps_total counter
dsd_steps_total{cell} {steps}
# TYPE dsd_emitted_tokens_total counter
dsd_emitted_tokens_total{cell} {emitted}
# TYPE dsd_draft_tokens_total counter
dsd_draft_tokens_total{cell} {drafted}
# TYPE dsd_accepted_tokens_total counter
dsd_accepted_tokens_total{cell} {accepted}
# TYPE dsd_step_batch_size histogram
dsd_step_batch_size_bucket{{{LABELS},le="+Inf"}} {steps}
dsd_step_batch_size_count{{{LABELS}}} {steps}
dsd_step_batch_size_sum{{{LABELS}}} {4 * steps}
# TYPE dsd_num_speculative_tokens gauge
dsd_num_speculative_tokens{{{LABELS}}} 3.0
# TYPE dsd_schedule_revision_info gauge
dsd_schedule_revision_info{{{LABELS},revision="7",hash="abc",source="http"}} 1.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{{LABELS}}} 4.0
"""


def test_a_page_is_read_by_name_and_label() -> None:
    reading = read(page(steps=10, emitted=80), 0.0)

    assert reading.total(STEPS) == 10
    assert reading.total(EMITTED, k="3") == 80
    assert reading.total(EMITTED, k="1") == 0
    assert reading.values(K_NOW) == [3]
    assert reading.total(RUNNING) == 4
    assert reading.labels_of(REVISION)[0]["hash"] == "abc"
    assert "python_info" not in reading.series


def test_rates_are_growth_over_time() -> None:
    before = read(page(steps=10, emitted=80, drafted=120, accepted=40), 100.0)
    after = read(page(steps=20, emitted=180, drafted=240, accepted=100), 102.0)

    rates = combined([growth(before, after)])

    assert (rates.tokens_per_second, rates.steps_per_second) == (50, 5)
    assert (rates.tokens_per_step, rates.batch_size, rates.tokens_per_request) == (10, 4, 2.5)
    assert rates.acceptance == 0.5


def test_a_counter_that_fell_began_anew() -> None:
    grown = growth(read(page(steps=1000, emitted=5000), 0.0), read(page(steps=10, emitted=30), 1.0))

    assert grown.total(STEPS) == 10
    assert grown.total(EMITTED) == 30


def test_nothing_happened_gives_no_ratios() -> None:
    reading = read(page(steps=10, emitted=80), 0.0)

    rates = combined([growth(reading, read(page(steps=10, emitted=80), 2.0))])

    assert rates.tokens_per_second == 0
    assert (rates.tokens_per_step, rates.acceptance, rates.batch_size, rates.tokens_per_request) == (None,) * 4


def test_engines_add_up_and_share_their_ratios() -> None:
    start = read(page(), 0.0)
    slow = growth(start, read(page(steps=10, emitted=40, drafted=100, accepted=0), 1.0))
    fast = growth(start, read(page(steps=30, emitted=360, drafted=300, accepted=200), 2.0))

    rates = combined([slow, fast])

    assert rates.tokens_per_second == 40 + 180
    assert rates.tokens_per_step == pytest.approx(400 / 40)
    assert rates.acceptance == pytest.approx(200 / 400)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_what_never_falls_grows_by_its_difference(steps: list[int]) -> None:
    readings = [read(page(steps=value), float(i)) for i, value in enumerate(sorted(steps))]

    grown = sum(growth(a, b).total(STEPS) for a, b in pairwise(readings))

    assert grown == max(steps) - min(steps)
