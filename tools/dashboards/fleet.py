"""The dashboard "DSD / Fleet": all DSDDeployments, what they serve, and what speculation costs each."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from tools.dashboards.frame import Board, Row, Variable, scope
from tools.dashboards.panels import (
    COUNT,
    ORANGE,
    RATIO,
    TOKENS_PER_SECOND,
    Look,
    Placed,
    Query,
    column,
    rows,
    series,
    transformation,
    value,
)  # fmt: skip
from tools.dashboards.promql import (
    acceptance,
    engine,
    rate,
    ratio,
    rejected_per_token,
    resource,
    total,
    zero_or,
)  # fmt: skip

_WHO: Final = ("dsd_namespace", "dsd_name")
_LEGEND: Final = "{{dsd_namespace}}/{{dsd_name}}"
_READY: Final = resource("dsd_operator_condition", 'type="Ready"')
_NOT_READY: Final = resource("dsd_operator_condition", 'type="Ready"', 'status!="True"')
_NOT_APPLIED: Final = resource("dsd_operator_condition", 'type="ScheduleApplied"', 'status!="True"')
_WANTED: Final = resource("dsd_operator_replicas")
_READY_PODS: Final = resource("dsd_operator_ready_replicas")
_SCHEDULE_PODS: Final = resource("dsd_operator_schedule_pods")
_BEHIND: Final = resource("dsd_operator_schedule_pods", 'state!="applied"')
_EMITTED: Final = engine("dsd_emitted_tokens_total")
_SCHEDULES: Final = engine("dsd_schedule_revision_info")


def _each(series_of: str) -> str:
    """One value for each resource: two operators may tell of it while one takes over from the other."""
    return total(series_of, *_WHO, how="max")


def _count(series_of: str) -> str:
    return f"count({_each(series_of)})"


def _sum(series_of: str, *labels: str) -> str:
    """Sum over the resources."""
    return f"sum({total(series_of, *_WHO, *labels, how='max')})"


def _overview() -> list[Placed]:
    ready = f"{_sum(_READY_PODS)} / ({_sum(_WANTED)} > 0)"
    return [
        value("DSDDeployments", "DSDDeployments that an operator takes care of.", COUNT, _count(_READY), width=3),
        value("Not ready", "DSDDeployments whose condition Ready is not True.", COUNT,
              zero_or(_count(_NOT_READY), _count(_READY)), ((None, "green"), (1, "red")), width=3),
        value("Ready pods", "Pods that are ready, as a share of those that are wanted.", RATIO, ready,
              ((None, "red"), (0.5, ORANGE), (1, "green")), decimals=0, width=3),
        value("Schedules in force", "The schedules that each DSDDeployment's engines use now, added up: as many as "
              "there are DSDDeployments that serve. More, for longer than a rollout takes: some pods are out of sync.",
              COUNT,
              f"count({total(_SCHEDULES, *_WHO, 'hash', how='count')})", width=3),
        value("Pods out of sync", "Pods that can serve and do not use, or are not known to use, their schedule.", COUNT,
              _sum(_BEHIND, "state"), ((None, "green"), (1, ORANGE)), width=3),
        value("Goodput", "Tokens that all engines hand to their clients in a second.", TOKENS_PER_SECOND,
              rate(_EMITTED), width=3),
        value("Acceptance", "Share of the draft tokens that was accepted.", RATIO, acceptance(), decimals=0, width=3),
        value("Cost of speculation", "Draft tokens that were verified in vain for each token that clients got.", COUNT,
              rejected_per_token(), decimals=2, width=3),
    ]  # fmt: skip


_NAMES: Final = {
    "dsd_namespace": "Namespace", "dsd_name": "Name", "status": "Ready", "reason": "Reason", "Value #B": "Pods wanted",
    "Value #C": "Pods ready", "Value #D": "Pods out of sync", "Value #E": "Goodput", "Value #F": "Acceptance",
    "Value #G": "Cost",
}  # fmt: skip


_LINK: Final = {
    "title": "Open the deployment",
    "url": "/d/dsd-deployment?${datasource:queryparam}&var-namespace=${__data.fields.Namespace}"
    "&var-deployment=${__value.raw}&${__url_time_range}",
}
_COLOURS: Final = [{"type": "value", "options": {
    "True": {"color": "green", "index": 0}, "False": {"color": "red", "index": 1},
    "Unknown": {"color": ORANGE, "index": 2},
}}]  # fmt: skip


def _lines() -> list[Query]:
    """One query for each column of numbers; the first brings the lines."""
    queries = [
        total(_READY, *_WHO, "status", "reason", how="max"),
        _each(_WANTED),
        _each(_READY_PODS),
        f"sum by ({', '.join(_WHO)}) ({total(_BEHIND, *_WHO, 'state', how='max')})",
        rate(_EMITTED, *_WHO),
        acceptance(*_WHO),
        rejected_per_token(*_WHO),
    ]
    return [Query(expr, instant=True) for expr in queries]


def _columns() -> list[tuple[str, list[DynamicConfigValue]]]:
    gauge = {"type": "gauge", "mode": "basic"}
    return [
        ("Name", column(links=[_LINK])),
        ("Ready", column(mappings=_COLOURS, custom__cellOptions={"type": "color-text"}, custom__width=90)),
        ("Goodput", column(unit=TOKENS_PER_SECOND, decimals=1)),
        ("Acceptance", column(unit=RATIO, decimals=0, max=1, min=0, custom__cellOptions=gauge)),
        ("Cost", column(decimals=2)),
    ]


def _table() -> Placed:
    shown = {name: place for place, name in enumerate(_NAMES)}
    hidden = {"Time": True, "Value #A": True}
    return rows(
        "DSDDeployments",
        "One line for each DSDDeployment: is it as its spec says, how many pods are there, what does it serve, and "
        "what does speculation cost. A click on a name opens its dashboard.",
        COUNT, _lines(),
        [
            transformation("merge"),
            transformation("organize", excludeByName=hidden, renameByName=_NAMES, indexByName=shown),
        ],
        _columns(), width=24, height=6,
    )  # fmt: skip


def _state() -> list[Placed]:
    return [
        _table(),
        series("Pods", "Pods that are wanted, and pods that are ready, of all DSDDeployments.", COUNT,
               Query(_sum(_WANTED), "wanted"), Query(_sum(_READY_PODS), "ready"), look=Look("steps"), width=8),
        series("Pods by schedule",
               "Pods that can serve, by what is known of their schedule: `applied`, `unknown` (starting, or out of "
               "reach: the mounted file brings it) and `out_of_sync`.", COUNT,
               Query(f"sum by (state) ({total(_SCHEDULE_PODS, *_WHO, 'state', how='max')})", "{{state}}"),
               look=Look("stacked"), width=8),
        series("Schedule not applied", "Where the condition ScheduleApplied is not True, and why; empty when all are.",
               COUNT, Query(total(_NOT_APPLIED, *_WHO, "reason", how="max"), f"{_LEGEND} {{{{reason}}}}"),
               look=Look("steps"), width=8),
    ]  # fmt: skip


def _work() -> list[Placed]:
    steps = engine("dsd_steps_total")
    off = engine("dsd_steps_total", 'k="0"')
    return [
        series("Goodput", "Tokens that clients get in a second.", TOKENS_PER_SECOND,
               Query(rate(_EMITTED, *_WHO), _LEGEND), look=Look("stacked")),
        series("Cost of speculation",
               "Draft tokens that were verified in vain for each token that clients got. It may be high where the "
               "engine has room to spare; under load it is time taken from other requests.",
               COUNT, Query(rejected_per_token(*_WHO), _LEGEND), look=Look(decimals=2)),
        series("Acceptance", "Share of the draft tokens that was accepted.", RATIO,
               Query(acceptance(*_WHO), _LEGEND), look=Look(highest=1)),
        series("Steps without speculation", "Share of the engines' steps that verified no draft (K=0), those that only "
               "compute prompts included.", RATIO,
               Query(ratio(zero_or(rate(off, *_WHO), rate(steps, *_WHO)), rate(steps, *_WHO)), _LEGEND),
               look=Look(highest=1)),
    ]  # fmt: skip


def _schedules() -> Placed:
    labels = (*_WHO, "revision", "hash", "source")
    names = {"dsd_namespace": "Namespace", "dsd_name": "Name", "revision": "Revision", "hash": "Hash",
             "source": "Brought by", "Value": "Engines"}  # fmt: skip
    return rows(
        "Schedules in force",
        "The schedules that engines use now, and how many engines use each. A DSDDeployment with two lines is "
        "changing, or has pods that are out of sync.",
        COUNT, [Query(total(_SCHEDULES, *labels, how="count"), instant=True)],
        [transformation("organize", excludeByName={"Time": True}, renameByName=names,
                        indexByName={label: place for place, label in enumerate(names)})],
        width=24, height=6,
    )  # fmt: skip


def board() -> Board:
    """The dashboard."""
    both = '{__name__=~"dsd_operator_condition|dsd_plugin_info"}'
    return Board(
        "dsd-fleet",
        "DSD / Fleet",
        "All DSDDeployments: are they ready and in sync, what do they serve, and what does speculation cost.",
        [
            *scope(both),
            Variable("namespace", "Namespace", f"label_values({both}, dsd_namespace)"),
            Variable("deployment", "DSDDeployment",
                     f'label_values({both[:-1]}, dsd_namespace=~"$namespace"}}, dsd_name)'),
            Variable("model_name", "Model", "label_values(dsd_plugin_info, model_name)"),
        ],
        [
            Row("", _overview()),
            Row("State", _state()),
            Row("Work", _work()),
            Row("Schedules", [_schedules()]),
        ],
    )  # fmt: skip
