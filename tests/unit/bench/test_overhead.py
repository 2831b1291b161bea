"""The overhead benchmark's summary: what must hold is computed from the pairs that were measured."""

from typing import Any

from bench.overhead import summary


def measured(share: float) -> dict[str, Any]:
    """A pair of blocks."""
    return {
        "step_us": 5000.0, "step_without_us": 4990.0, "hooks_us": 50 * share, "share_percent": share,
        "slowdown_percent": 0.2,
    }  # fmt: skip


def test_median_share_and_page_are_what_must_hold() -> None:
    result = summary([measured(share) for share in (0.2, 0.4, 9.0)], 59_999)
    assert [(r.value, r.threshold, r.met) for r in result.required] == [(0.4, 1.0, True), (59.999, 60.0, True)]
    assert len(result.data) == 5


def test_what_does_not_hold_is_said() -> None:
    result = summary([measured(1.1), measured(1.2)], 60_001)
    assert [r.met for r in result.required] == [False, False]
