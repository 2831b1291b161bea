"""Cases of the alerts that the engines' series feed."""

from typing import Final

from tests.unit.rules.case import Case, Kind
from tests.unit.rules.series import (
    DEMO,
    MODEL,
    Series,
    Values,
    condition,
    counter,
    engine,
    later,
    plugin,
    until,
)

_FIRES, _SILENT, _STEADY = Kind.FIRES, Kind.SILENT, Kind.STEADY

PLUGIN: Final = (
    Case(
        "DSDPluginOff", _FIRES, "an engine says so",
        [plugin([1] * 20, mode="off")], firing=(5, 19), quiet=(0, 4), labels=DEMO,
    ),
    Case(
        "DSDPluginOff", _FIRES, "the operator says so of an engine that nobody scrapes",
        [condition("ScheduleApplied", "False", "RuntimePluginOff", [1] * 20)],
        firing=(5, 19), quiet=(0, 4), labels=DEMO,
    ),
    Case(
        "DSDPluginOff", _SILENT, "the plugin is on, or the schedule is refused for another reason",
        [plugin([1] * 60), condition("ScheduleApplied", "False", "RefusedByEngine", [1] * 60)], quiet=range(60),
    ),
    Case(
        "DSDPluginOff", _SILENT, "scaled to zero or deleted while it fired",
        [
            plugin(until([1] * 20, 20), mode="off"),
            condition("ScheduleApplied", "False", "RuntimePluginOff", until([1] * 20, 20)),
        ],
        quiet=range(23, 60),
    ),
    Case(
        "DSDPluginOff", _STEADY, "one of two pods is replaced by another that is no better",
        [
            plugin(until([1] * 20, 20), mode="off"),
            plugin([1] * 60, "demo-2", mode="off"),
            plugin(later([1] * 36, 24), "demo-3", mode="off"),
        ],
        firing=(5, 59),
    ),
)  # fmt: skip


def _row(k: int, per_minute: Values, seconds: Values, tokens: Values, pod: str) -> list[Series]:
    """What an engine counts at one K and a concurrency of 8; every step is priced."""
    pair = {"k": str(k), "concurrency": "8"}
    return [
        engine("dsd_steps_total", per_minute, pod, **pair),
        engine("dsd_step_duration_seconds_count", per_minute, pod, k=str(k)),
        engine("dsd_step_seconds_total", seconds, pod, **pair),
        engine("dsd_emitted_tokens_total", tokens, pod, **pair),
    ]


def _without(pod: str = "demo-1", minutes: int = 240) -> list[Series]:
    """K=0 for the first hour: 400 tokens per second of decoding."""
    on, off = 60, minutes - 60
    steps, seconds = counter((1000, on), (0, off)), counter((20, on), (0, off))
    return _row(0, steps, seconds, counter((8000, on), (0, off)), pod)


def _with(tokens: float, pod: str = "demo-1", start: int = 60, end: int = 240, steps: float = 800) -> list[Series]:
    """K=3 from one minute to another: `tokens` a minute in 30 seconds of decoding."""
    slopes = (0, start), (1, end - start)
    made = [[slope * float(value) for value in counter(*slopes)] for slope in (steps, 30, tokens)]
    counts, seconds, emitted = (until(values, end) if end < 240 else values for values in made)
    return _row(3, counts, seconds, emitted, pod)


def _late(series: list[Series], minutes: int) -> list[Series]:
    return [Series(one.name, one.labels, later(one.values, minutes)) for one in series]


_AT: Final = {**MODEL, "k": "3", "concurrency": "8"}

SLOWER: Final = (
    Case(
        "DSDSpeculationSlowerThanNone", _FIRES, "300 tokens a second with K=3, and 400 without",
        [plugin([1] * 240), *_without(), *_with(9000)],
        firing=(100, 200), quiet=(59, 70), labels=_AT, value="75%",
    ),
    Case(
        "DSDSpeculationSlowerThanNone", _SILENT, "speculation pays",
        [plugin([1] * 240), *_without(), *_with(18000)], quiet=range(0, 240, 10),
    ),
    Case(
        "DSDSpeculationSlowerThanNone", _SILENT, "nobody knows what K=0 would bring at this concurrency",
        [plugin([1] * 240), *_with(9000)], quiet=range(0, 240, 10),
    ),
    Case(
        "DSDSpeculationSlowerThanNone", _SILENT, "what counts as K=0 only computed prompts, and has no price",
        [
            plugin([1] * 240), *_with(9000),
            engine("dsd_steps_total", counter((1000, 240)), k="0", concurrency="8"),
            engine("dsd_step_duration_seconds_count", counter((10, 240)), k="0"),
            engine("dsd_step_seconds_total", counter((0.2, 240)), k="0", concurrency="8"),
            engine("dsd_emitted_tokens_total", counter((8000, 240)), k="0", concurrency="8"),
        ],
        quiet=range(0, 240, 10),
    ),
    Case(
        "DSDSpeculationSlowerThanNone", _SILENT, "a handful of steps says nothing",
        [plugin([1] * 240), *_without(), *_with(90, steps=8)], quiet=range(0, 240, 10),
    ),
    Case(
        "DSDSpeculationSlowerThanNone", _SILENT, "the schedule was changed back to K=0",
        [plugin([1] * 240), *_without(), *_with(9000, end=80)], quiet=range(100, 240, 5),
    ),
    Case(
        "DSDSpeculationSlowerThanNone", _SILENT, "scaled to zero or deleted while it fired: over within two minutes",
        [
            plugin(until([1] * 150, 150)),
            *(Series(one.name, one.labels, until(one.values, 150)) for one in [*_without(), *_with(9000)]),
        ],
        quiet=range(153, 240, 5),
    ),
    Case(
        "DSDSpeculationSlowerThanNone", _STEADY, "one of two pods is replaced, and its counters begin anew",
        [
            *(plugin([1] * 240, pod) for pod in ("demo-1", "demo-2")), *_without(), *_with(9000),
            *_with(9000, "demo-2", end=130), *_late(_with(9000, "demo-3", start=0), 140),
        ],
        firing=(100, 239),
    ),
)  # fmt: skip


def _drafts(share: Values, pod: str = "demo-1", drafts: float = 600) -> list[Series]:
    """First tokens drafted each minute, and the share of them that is accepted in each minute."""
    accepted = [0.0]
    for value in share[:-1]:
        accepted.append(round(accepted[-1] + drafts * float(value), 3))
    return [
        engine("dsd_draft_tokens_per_pos_total", counter((drafts, len(share))), pod, position="0"),
        engine("dsd_accepted_tokens_per_pos_total", list(accepted), pod, position="0"),
    ]


_DAY: Final[Values] = [0.8] * 300

ACCEPTANCE: Final = (
    Case(
        "DSDAcceptanceCollapsed", _FIRES, "from 80 % to 20 %, on new traffic or with new weights",
        [plugin([1] * 400), *_drafts([*_DAY, *[0.2] * 100])],
        firing=(340, 390), quiet=(300, 310), labels=MODEL, value="20%",
    ),
    Case(
        "DSDAcceptanceCollapsed", _FIRES, "a drafter that never fitted",
        [plugin([1] * 60), *_drafts([0.01] * 60)], firing=(40,), quiet=(10,), labels=MODEL, value="1%",
    ),
    Case(
        "DSDAcceptanceCollapsed", _SILENT, "modest from the start, as ngram is; and a little worse than it was",
        [plugin([1] * 400), *_drafts([*[0.3] * 300, *[0.2] * 100])], quiet=range(0, 400, 10),
    ),
    Case(
        "DSDAcceptanceCollapsed", _SILENT, "a larger K: later tokens are accepted less, the first as before",
        [
            plugin([1] * 400), *_drafts([0.8] * 400),
            engine("dsd_draft_tokens_per_pos_total", counter((0, 300), (600, 100)), position="4"),
            engine("dsd_accepted_tokens_per_pos_total", counter((0, 300), (12, 100)), position="4"),
        ],
        quiet=range(0, 400, 10),
    ),
    Case(
        "DSDAcceptanceCollapsed", _SILENT, "a few odd requests at night",
        [plugin([1] * 200), *_drafts([0.0] * 200, drafts=20)], quiet=range(0, 200, 10),
    ),
    Case(
        "DSDAcceptanceCollapsed", _SILENT, "scaled to zero or deleted while it fired: over within two minutes",
        [plugin(until([1] * 60, 60)), *(Series(s.name, s.labels, until(s.values, 60)) for s in _drafts([0.01] * 60))],
        quiet=range(63, 90),
    ),
    Case(
        "DSDAcceptanceCollapsed", _STEADY, "it moves, and one of two pods is replaced",
        [
            *(plugin([1] * 400, pod) for pod in ("demo-1", "demo-2")),
            *_drafts([*_DAY, *[0.1, 0.3, 0.2, 0.3] * 25]),
            *_late(_drafts([0.3, 0.1] * 30, "demo-3"), 340),
        ],
        firing=(340, 399),
    ),
)  # fmt: skip


def _hovering(steps: float, share: float, pod: str = "demo-1", minutes: int = 60) -> list[Series]:
    return [
        engine("dsd_steps_total", counter((steps, minutes)), pod, k="3", concurrency="8"),
        engine("dsd_num_speculative_tokens_changes_total", counter((steps * share, minutes)), pod),
    ]


THRASHING: Final = (
    Case(
        "DSDKThrashing", _FIRES, "another K in every fifth step",
        [plugin([1] * 60), *_hovering(3000, 0.2)], firing=(30, 59), quiet=(0, 14), labels=MODEL, value="20%",
    ),
    Case(
        "DSDKThrashing", _SILENT, "another K in every twentieth step",
        [plugin([1] * 60), *_hovering(3000, 0.05)], quiet=range(60),
    ),
    Case(
        "DSDKThrashing", _SILENT, "an engine that wakes for single requests",
        [plugin([1] * 60), *_hovering(30, 0.5)], quiet=range(60),
    ),
    Case(
        "DSDKThrashing", _SILENT, "scaled to zero or deleted while it fired: over within two minutes",
        [
            plugin(until([1] * 40, 40)),
            *(Series(one.name, one.labels, until(one.values, 40)) for one in _hovering(3000, 0.2)),
        ],
        quiet=range(43, 80),
    ),
    Case(
        "DSDKThrashing", _STEADY, "it comes and goes within minutes, and one of two pods is replaced",
        [
            *(plugin([1] * 90, pod) for pod in ("demo-1", "demo-2")),
            engine("dsd_steps_total", counter((3000, 90)), k="3", concurrency="8"),
            engine("dsd_num_speculative_tokens_changes_total", counter(*[(0, 1), (900, 1)] * 45)),
            *_late(_hovering(3000, 0.2, "demo-3", 40), 45),
        ],
        firing=(30, 84),
    ),
)  # fmt: skip

CASES: Final = (*PLUGIN, *SLOWER, *ACCEPTANCE, *THRASHING)
