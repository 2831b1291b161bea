"""Cases of the alerts that the operator's own series feed. Team-a's `demo` is the DSDDeployment, unless one says so."""

from typing import Final

from tests.unit.rules.case import Case, Kind
from tests.unit.rules.series import (
    DEMO,
    GONE,
    Series,
    Values,
    alternating,
    condition,
    counter,
    later,
    operator,
    until,
)

_FIRES, _SILENT, _STEADY = Kind.FIRES, Kind.SILENT, Kind.STEADY
_HOURS: Final = range(0, 360, 5)


def _pods(state: str, values: Values, pod: str = "operator-1") -> Series:
    return operator("dsd_operator_schedule_pods", values, pod, state=state, **DEMO)


def _ready(values: Values, pod: str = "operator-1") -> tuple[str, str, str, Values, str]:
    return "Ready", "True", "Ready", values, pod


SCHEDULE: Final = (
    Case(
        "DSDScheduleNotApplied", _FIRES, "an engine refuses the schedule",
        [condition("ScheduleApplied", "False", "RefusedByEngine", [1] * 20)],
        firing=(5, 19), quiet=(0, 4), labels=DEMO,
    ),
    Case(
        "DSDScheduleNotApplied", _SILENT, "pods that start, and pods behind a mesh: the file brings the schedule",
        [
            condition("ScheduleApplied", "Unknown", "PodNotReady", [1] * 30),
            condition("ScheduleApplied", "Unknown", "PodUnreachable", [1] * 60, name="meshed"),
        ],
        quiet=range(0, 60, 5),
    ),
    Case(
        "DSDScheduleNotApplied", _SILENT, "scaled to zero",
        [condition("ScheduleApplied", "True", "ScaledToZero", [1] * 60)], quiet=range(0, 60, 5),
    ),
    Case(
        "DSDScheduleNotApplied", _SILENT, "being made; and without the plugin, which has an alert of its own",
        [
            condition("ScheduleApplied", "False", "Creating", [1] * 60),
            condition("ScheduleApplied", "False", "RuntimePluginOff", [1] * 60, name="other"),
        ],
        quiet=range(0, 60, 5),
    ),
    Case(
        "DSDScheduleNotApplied", _SILENT, "refused for two minutes, then in use",
        [
            condition("ScheduleApplied", "False", "RefusedByEngine", until([1] * 3, 3)),
            condition("ScheduleApplied", "True", "Applied", later([1] * 30, 3)),
        ],
        quiet=range(34),
    ),
    Case(
        "DSDScheduleNotApplied", _SILENT, "deleted while it fired: over within two minutes",
        [condition("ScheduleApplied", "False", "RefusedByEngine", until([1] * 20, 20))], quiet=range(23, 60),
    ),
    Case(
        "DSDScheduleNotApplied", _STEADY, "the reason alternates, and the operator is replaced",
        [
            condition("ScheduleApplied", "False", "TokenRefused", [*alternating(20, 1, 1, "stale"), *GONE]),
            condition("ScheduleApplied", "False", "RefusedByEngine", [*alternating(20, "stale", "stale", 1), *GONE]),
            condition("ScheduleApplied", "False", "RefusedByEngine", later([1] * 20, 22), "operator-2"),
        ],
        firing=(5, 41), quiet=(4,),
    ),
)  # fmt: skip

NOT_READY: Final = (
    Case(
        "DSDDeploymentNotReady", _FIRES, "a pod crashes again and again",
        [condition("Ready", "False", "CrashLoopBackOff", [1] * 30)],
        firing=(15, 29), quiet=(0, 14), labels=DEMO,
    ),
    Case(
        "DSDDeploymentNotReady", _FIRES, "a pod that was ready never answers any more",
        [condition("Ready", "False", "Degraded", [1] * 130)],
        firing=(120, 129), quiet=(60, 119), labels=DEMO, rule=1,
    ),
    Case(
        "DSDDeploymentNotReady", _FIRES, "a model that is not there",
        [condition("Ready", "False", "ModelNotFound", [1] * 30)],
        firing=(15, 29), quiet=(0, 14), labels=DEMO,
    ),
    Case(
        "DSDDeploymentNotReady", _FIRES, "the monitor that it asks for cannot be made",
        [condition("Ready", "False", "ApiMissing", [1] * 30)], firing=(20,), labels=DEMO,
    ),
    Case(
        "DSDDeploymentNotReady", _SILENT, "loading for an hour and ten minutes, as long as it may by default",
        [
            condition("Ready", "False", "Creating", until([1] * 1, 1)),
            condition("Ready", "False", "Pending", later(until([1] * 2, 2), 1)),
            condition("Ready", "False", "ContainerCreating", later(until([1] * 2, 2), 3)),
            condition("Ready", "False", "Starting", later(until([1] * 65, 65), 5)),
            condition("Ready", "True", "Ready", later([1] * 100, 70)),
        ],
        quiet=range(0, 170, 5),
    ),
    Case(
        "DSDDeploymentNotReady", _FIRES, "a change of a Deployment that is paused: no pod is replaced",
        [
            condition("Ready", "False", "RollingOut", later([1] * 50, 10)),
            _pods("applied", [3] * 60), _pods("unknown", [0] * 60),
        ],
        firing=(40, 59), quiet=(10, 39), labels=DEMO, rule=2,
    ),
    Case(
        "DSDDeploymentNotReady", _FIRES, "a roll-out that is paused in its middle",
        [
            condition("Ready", "False", "RollingOut", [1] * 170),
            _pods("applied", [3] * 5 + [2] * 15 + [3] * 150), _pods("unknown", [0] * 5 + [1] * 15 + [0] * 150),
        ],
        firing=(145, 169), quiet=(60, 135), labels=DEMO, rule=2,
    ),
    Case(
        "DSDDeploymentNotReady", _SILENT, "a roll-out of five pods, and pods held back by a scheduling gate",
        [
            condition("Ready", "False", "RollingOut", [1] * 360),
            _pods("applied", [5] * 2 + ([4] * 70 + [5] * 1) * 5 + [5] * 3),
            _pods("unknown", [0] * 2 + ([1] * 70 + [0] * 1) * 5 + [0] * 3),
            condition("Ready", "False", "SchedulingGated", [1] * 360, name="queued"),
        ],
        quiet=_HOURS,
    ),
    Case(
        "DSDDeploymentNotReady", _SILENT, "scaled to zero for hours and back",
        [
            condition("Ready", "True", "Ready", until([1] * 30, 30)),
            condition("Ready", "True", "ScaledToZero", later(until([1] * 90, 90), 30)),
            condition("Ready", "False", "Starting", later(until([1] * 20, 20), 120)),
            condition("Ready", "True", "Ready", later([1] * 40, 140), "operator-1"),
        ],
        quiet=range(0, 180, 5),
    ),
    Case(
        "DSDDeploymentNotReady", _SILENT, "no node for ten minutes, until the autoscaler has brought one",
        [
            condition("Ready", "False", "Unschedulable", until([1] * 10, 10)),
            condition("Ready", "False", "Starting", later([1] * 30, 10)),
        ],
        quiet=range(40),
    ),
    Case(
        "DSDDeploymentNotReady", _SILENT, "deleted while it fired: over within two minutes",
        [condition("Ready", "False", "OOMKilled", until([1] * 30, 30))], quiet=range(33, 60),
    ),
    Case(
        "DSDDeploymentNotReady", _STEADY, "the reason alternates, and the operator is replaced",
        [
            condition("Ready", "False", "CrashLoopBackOff", [*alternating(30, 1, "stale"), *GONE]),
            condition("Ready", "False", "OOMKilled", [*alternating(30, "stale", 1), *GONE]),
            condition("Ready", "False", "CrashLoopBackOff", later([1] * 30, 32), "operator-2"),
        ],
        firing=(15, 61), quiet=(14,),
    ),
    Case(
        "DSDDeploymentNotReady", _STEADY, "a roll-out stands still, and the operator is replaced",
        [
            condition("Ready", "False", "RollingOut", until([1] * 50, 50)),
            condition("Ready", "False", "RollingOut", later([1] * 60, 52), "operator-2"),
            _pods("applied", until([3] * 50, 50)), _pods("applied", later([3] * 60, 52), "operator-2"),
        ],
        firing=(30, 110), quiet=(29,),
    ),
)  # fmt: skip

RESTARTS: Final = (
    Case(
        "DSDEngineRestarts", _FIRES, "three restarts within a quarter of an hour",
        [
            operator("dsd_operator_engine_restarts_total", [0] * 5 + [1] * 5 + [2] * 5 + [3] * 70, **DEMO),
            condition(*_ready([1] * 90)),
        ],
        firing=(61,), quiet=(0, 6), labels=DEMO, value="3",
    ),
    Case(
        "DSDEngineRestarts", _SILENT, "a single restart",
        [
            operator("dsd_operator_engine_restarts_total", [0] * 100 + [1] * 100, **DEMO),
            condition(*_ready([1] * 200)),
        ],
        quiet=range(0, 200, 5),
    ),
    Case(
        "DSDEngineRestarts", _SILENT, "the operator restarts, and counts anew",
        [
            operator("dsd_operator_engine_restarts_total", until([7] * 60, 60), **DEMO),
            operator("dsd_operator_engine_restarts_total", later([0] * 60, 61), "operator-2", **DEMO),
            condition(*_ready(until([1] * 60, 60))),
            condition(*_ready(later([1] * 60, 61), "operator-2")),
        ],
        quiet=range(0, 120, 5),
    ),
    Case(
        "DSDEngineRestarts", _SILENT, "deleted while it fired: over within two minutes, not after the hour",
        [
            operator("dsd_operator_engine_restarts_total", until([0] * 5 + [4] * 60, 30), **DEMO),
            condition(*_ready(until([1] * 30, 30))),
        ],
        quiet=range(33, 90),
    ),
    Case(
        "DSDEngineRestarts", _STEADY, "the operator is replaced meanwhile",
        [
            operator("dsd_operator_engine_restarts_total", until([0] * 5 + [4] * 60, 30), **DEMO),
            operator("dsd_operator_engine_restarts_total", later([0] * 60, 32), "operator-2", **DEMO),
            condition(*_ready(until([1] * 30, 30))),
            condition(*_ready(later([1] * 60, 32), "operator-2")),
        ],
        firing=(7, 60),
    ),
)  # fmt: skip

_PASSES: Final = "dsd_operator_reconcile_total"
_DEPTH: Final = "dsd_operator_queue_depth"
_BUILD: Final = "dsd_operator_build_info"
_RELEASE: Final = {"job": "dsd-operator", "namespace": "dsd-system"}
_INSTANCE: Final = {"job": "dsd-operator", "instance": "operator-1:8080"}

DOWN: Final = (
    Case(
        "DSDOperatorDown", _FIRES, "gone for ten minutes",
        [operator(_BUILD, until([1] * 5, 5), version="1")], firing=(15, 30, 1430), quiet=(4, 14), labels=_RELEASE,
    ),
    Case(
        "DSDOperatorDown", _FIRES, "one of two is gone",
        [
            operator(_BUILD, until([1] * 5, 5), version="1"),
            Series(_BUILD, {**_RELEASE, "namespace": "other", "pod": "x"}, [1] * 60),
        ],
        firing=(15, 59), quiet=(4, 14), labels=_RELEASE,
    ),
    Case("DSDOperatorDown", _FIRES, "never there", [], firing=(10, 60), quiet=(0, 9), rule=1),
    Case(
        "DSDOperatorDown", _FIRES, "gone for more than a day",
        [operator(_BUILD, until([1] * 5, 5), version="1")], firing=(1450,), rule=1,
    ),
    Case(
        "DSDOperatorDown", _SILENT, "one of two was removed for good: over after a day",
        [
            operator(_BUILD, until([1] * 5, 5), version="1"),
            Series(_BUILD, {**_RELEASE, "namespace": "other", "pod": "x"}, [1] * 1500),
        ],
        quiet=range(1446, 1500, 5),
    ),
    Case(
        "DSDOperatorDown", _SILENT, "replaced within five minutes",
        [
            operator(_BUILD, until([1] * 20, 20), version="1"),
            operator(_BUILD, later([1] * 40, 25), "operator-2", version="2"),
        ],
        quiet=range(60),
    ),
    Case(
        "DSDOperatorDown", _STEADY, "nothing comes back",
        [operator(_BUILD, until([1] * 5, 5), version="1")], firing=(15, 60),
    ),
)  # fmt: skip

STUCK: Final = (
    Case(
        "DSDOperatorStuck", _FIRES, "three wait, and no pass ends",
        [
            operator(_DEPTH, [0] * 10 + [3] * 50),
            operator(_PASSES, [*counter((10, 10)), *[100] * 50], result="success"),
        ],
        firing=(30, 50), quiet=(0, 15, 20), labels=_INSTANCE, value="3",
    ),
    Case(
        "DSDOperatorStuck", _SILENT, "a long queue that is worked on; and an operator with nothing to do",
        [
            operator(_DEPTH, [40] * 60),
            operator(_PASSES, counter((0.5, 60)), result="retry"),
            operator(_DEPTH, [0] * 60, "idle"),
            operator(_PASSES, [5] * 60, "idle", result="success"),
        ],
        quiet=range(60),
    ),
    Case(
        "DSDOperatorStuck", _SILENT, "killed by its liveness probe, and well again",
        [
            operator(_DEPTH, until([3] * 8, 8)),
            operator(_PASSES, until([9] * 8, 8), result="success"),
            operator(_DEPTH, later([0] * 40, 9), "operator-2"),
            operator(_PASSES, later(counter((5, 40)), 9), "operator-2", result="success"),
        ],
        quiet=range(49),
    ),
    Case(
        "DSDOperatorStuck", _STEADY, "the queue grows, and a scrape fails",
        [
            operator(_DEPTH, [*range(1, 31), "stale", *range(32, 61)]),
            operator(_PASSES, [*[100] * 30, "stale", *[100] * 29], result="success"),
        ],
        firing=(15, 59),
    ),
)  # fmt: skip

ERRORS: Final = (
    Case(
        "DSDReconcileErrors", _FIRES, "every second pass fails",
        [
            operator(_PASSES, counter((1, 60)), result="error"),
            operator(_PASSES, counter((1, 60)), result="success"),
        ],
        firing=(40, 59), quiet=(0, 14), labels={"job": "dsd-operator"}, value="50%",
    ),
    Case(
        "DSDReconcileErrors", _SILENT, "a few of many, and passes that are to be repeated",
        [
            operator(_PASSES, counter((1, 90)), result="error"),
            operator(_PASSES, counter((50, 90)), result="success"),
            operator(_PASSES, counter((10, 90)), result="retry"),
        ],
        quiet=range(0, 90, 2),
    ),
    Case(
        "DSDReconcileErrors", _SILENT, "the API server was away for five minutes",
        [
            operator(_PASSES, counter((0, 20), (4, 5), (0, 65)), result="error"),
            operator(_PASSES, counter((2, 90)), result="success"),
        ],
        quiet=range(90),
    ),
    Case(
        "DSDReconcileErrors", _STEADY, "the operator is replaced, and fails as before",
        [
            operator(_PASSES, until(counter((2, 40)), 40), result="error"),
            operator(_PASSES, until(counter((2, 40)), 40), result="success"),
            operator(_PASSES, later(counter((2, 40)), 41), "operator-2", result="error"),
            operator(_PASSES, later(counter((2, 40)), 41), "operator-2", result="success"),
        ],
        firing=(20, 80),
    ),
)  # fmt: skip

CASES: Final = (*SCHEDULE, *NOT_READY, *RESTARTS, *DOWN, *STUCK, *ERRORS)
