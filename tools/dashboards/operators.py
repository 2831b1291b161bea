"""The dashboard "DSD / Operator": is the operator well, and how fast does a change reach the pods?"""

from typing import Final

from tools.dashboards.frame import Board, Row, Variable, scope
from tools.dashboards.panels import (
    COUNT,
    ORANGE,
    PER_SECOND,
    RATIO,
    SECONDS,
    Look,
    Placed,
    Query,
    column,
    histogram_over_time,
    rows,
    series,
    transformation,
    value,
)  # fmt: skip
from tools.dashboards.promql import operator, quantile, rate, ratio, resource, total, zero_or

_PASSES: Final = operator("dsd_operator_reconcile_total")
_FAILED: Final = operator("dsd_operator_reconcile_total", 'result=~"error|retry"')
_REQUESTS: Final = operator("dsd_operator_api_requests_total")
_REFUSED: Final = operator("dsd_operator_api_requests_total", 'code!~"2.."')
_PASS_SECONDS: Final = operator("dsd_operator_reconcile_duration_seconds_bucket")
_APPLY_SECONDS: Final = operator("dsd_operator_schedule_apply_seconds_bucket")


def _quantiles(buckets: str) -> list[Query]:
    return [Query(quantile(q, buckets), f"p{q * 100:.0f}") for q in (0.5, 0.95, 0.99)]


def _overview() -> list[Placed]:
    passes, requests = rate(_PASSES), rate(_REQUESTS)
    return [
        value("Version", "The operator's version; several while a new one is being rolled out.", COUNT,
              total(operator("dsd_operator_build_info"), "version", how="count"), label="version"),
        value("DSDDeployments", "Resources that the operator takes care of.", COUNT,
              total(operator("dsd_operator_managed_deployments"))),
        value("Queue", "Resources that wait for a pass. It should fall back to 0 within seconds.", COUNT,
              total(operator("dsd_operator_queue_depth")), ((None, "green"), (10, ORANGE), (100, "red"))),
        value("Passes that failed", "Share of the passes that ended early or have to be repeated.", RATIO,
              ratio(zero_or(rate(_FAILED), passes), passes),
              ((None, "green"), (0.05, ORANGE), (0.25, "red")), decimals=1),
        value("API calls that failed", "Share of the requests to the API server without a 2xx answer.", RATIO,
              ratio(zero_or(rate(_REFUSED), requests), requests),
              ((None, "green"), (0.05, ORANGE), (0.25, "red")), decimals=1),
        value("Change to acknowledged, p95",
              "From the event of a changed schedule to the last ready pod's acknowledgement, over the whole range.",
              SECONDS, quantile(0.95, _APPLY_SECONDS, window="$__range"),
              ((None, "green"), (1, ORANGE), (10, "red")), decimals=2),
    ]  # fmt: skip


def _reconciling() -> list[Placed]:
    return [
        series("Passes by result",
               "Passes of the operator in a second. `retry`: something could not be done yet; `error`: the pass ended "
               "early; `gone`: the resource was deleted.",
               PER_SECOND, Query(rate(_PASSES, "result"), "{{result}}"), look=Look("stacked")),
        series("Duration of a pass", "How long one pass over one resource takes.", SECONDS,
               *_quantiles(_PASS_SECONDS)),
        series("Queue", "Resources that wait for a pass, at each scrape.", COUNT,
               Query(total(operator("dsd_operator_queue_depth"), "instance"), "{{instance}}"), look=Look("steps")),
        series("Errors",
               "Passes that ended early, and passes to be repeated, in a second. A lasting rate means a resource that "
               "cannot be brought to what it asks for; its condition says why (below).",
               PER_SECOND, Query(rate(_FAILED, "result"), "{{result}}")),
    ]  # fmt: skip


def _schedules() -> list[Placed]:
    return [
        series("Change to acknowledged",
               "From the event of a changed schedule to the last ready pod's acknowledgement. Empty while no schedule "
               "changes.",
               SECONDS, *_quantiles(_APPLY_SECONDS)),
        histogram_over_time("Change to acknowledged, every change",
               "Changed schedules by the time until the last ready pod acknowledged them.",
               SECONDS, f"sum by (le) (increase({_APPLY_SECONDS}[$__rate_interval]))"),
    ]  # fmt: skip


def _api_server() -> list[Placed]:
    return [
        series("API calls", "Requests to the API server in a second, by verb; the watches are not counted.",
               PER_SECOND, Query(rate(_REQUESTS, "verb"), "{{verb}}"), look=Look("stacked")),
        series("API calls that failed",
               "Requests without a 2xx answer, by status code; 0 stands for no answer. 409 and 404 may be part of the "
               "work, 403 and 5xx are not. Empty while every call succeeds.",
               PER_SECOND, Query(rate(_REFUSED, "verb", "code"), "{{verb}} {{code}}")),
    ]  # fmt: skip


def _resources() -> list[Placed]:
    conditions = resource("dsd_operator_condition", 'status!="True"', 'type!="Progressing"')
    labels = ("dsd_namespace", "dsd_name", "type", "status", "reason")
    names = {"dsd_namespace": "Namespace", "dsd_name": "Name", "type": "Condition", "status": "Status",
             "reason": "Reason"}  # fmt: skip
    hidden = {"Time": True, "Value": True}
    return [
        rows("Conditions that are not True",
             "What the operator says of resources that are not as they should be; empty when all are. "
             "`kubectl dsd explain` tells more. (Progressing is left out: it is False where all is done.)",
             COUNT, [Query(total(conditions, *labels, how="max"), instant=True)],
             [transformation("organize", excludeByName=hidden, renameByName=names,
                             indexByName={label: place for place, label in enumerate(labels)})],
             [("Status", column(custom__width=100))]),
        series("Engine restarts", "Containers of engines that ended and were started again, in the window of a rate.",
               COUNT, Query(f"sum by (dsd_namespace, dsd_name) (increase({_RESTARTS}[$__rate_interval]))",
                            "{{dsd_namespace}}/{{dsd_name}}")),
    ]  # fmt: skip


_RESTARTS: Final = resource("dsd_operator_engine_restarts_total")


def board() -> Board:
    """The dashboard."""
    conditions = "dsd_operator_condition"
    return Board(
        "dsd-operator",
        "DSD / Operator",
        "The operator's work: reconciling, errors, calls to the API server, how fast a changed schedule is in use.",
        [
            *scope("dsd_operator_build_info"),
            Variable("namespace", "Namespace", f"label_values({conditions}, dsd_namespace)"),
            Variable("deployment", "DSDDeployment",
                     f'label_values({conditions}{{dsd_namespace=~"$namespace"}}, dsd_name)'),
        ],
        [
            Row("", _overview()),
            Row("Reconciling", _reconciling()),
            Row("Changed schedules", _schedules()),
            Row("API server", _api_server()),
            Row("Resources", _resources()),
        ],
    )  # fmt: skip
