"""The dashboard "DSD / Deployment": its state, what each K earns it, and whether its schedule is the right one."""

from typing import Any, Final

from tools.dashboards import promql as q
from tools.dashboards.frame import Board, Row, Variable, scope
from tools.dashboards.heat import gain_matrix, heat_map
from tools.dashboards.panels import (
    COUNT,
    ORANGE,
    RATIO,
    SECONDS,
    SOURCE,
    TOKENS_PER_SECOND,
    Look,
    Placed,
    Query,
    bars,
    column,
    rows,
    series,
    transformation,
    value,
)  # fmt: skip

_ENGINE: Final = ("pod", "instance", "engine")
_POD: Final = "{{pod}} {{instance}} engine {{engine}}"


def _overview() -> list[Placed]:
    steps = q.rate(q.engine("dsd_steps_total"))
    changes = q.rate(q.engine("dsd_num_speculative_tokens_changes_total"))
    requests = q.rate(q.engine("dsd_draft_tokens_per_pos_total", 'position="0"'))
    accepted = q.rate(q.engine("dsd_accepted_tokens_total"))
    return [
        value("Engines", "Engines that serve and are scraped.", COUNT,
              q.total(q.engine("dsd_plugin_info"), how="count"), width=3),
        value("Goodput", "Tokens that clients get in a second.", TOKENS_PER_SECOND,
              q.rate(q.engine("dsd_emitted_tokens_total")), width=3),
        value("Gain over K=0", "How much faster the speculating steps were than K=0 would have been at the same "
              "concurrencies, over the whole range. Absent unless K=0 has run at one of them.", RATIO,
              q.gain(window=q.WHOLE), ((None, "red"), (0, "green")), decimals=0, width=3),
        value("Acceptance", "Share of the draft tokens that was accepted.", RATIO, q.acceptance(), decimals=0, width=3),
        value("Acceptance length", "Tokens that a request gets from a step with a draft: the accepted and one more.",
              COUNT, f"1 + {q.ratio(accepted, requests)}", decimals=2, width=3),
        value("Cost of speculation", "Draft tokens that were verified in vain for each token that clients got.", COUNT,
              q.rejected_per_token(), decimals=2, width=3),
        value("Changes of K", "Share of the steps for which another K was chosen than for the step before. Above 10% K "
              "flaps at the end of a range: use `smoothing`.", RATIO, q.ratio(changes, steps),
              ((None, "green"), (0.1, ORANGE)), decimals=1, width=3),
        value("Schedules in force", "Different schedules that the engines use now: 1 when all are in sync.", COUNT,
              f"count({q.total(q.engine('dsd_schedule_revision_info'), 'hash', how='count')})",
              ((None, "green"), (2, ORANGE)), width=3),
    ]  # fmt: skip


def _state() -> list[Placed]:
    """What the operator says of the resource; each series by `max`, for two may speak while one takes over."""
    conditions, why = q.resource("dsd_operator_condition"), ("type", "status", "reason")
    not_ready = q.resource("dsd_operator_condition", 'type="Ready"', 'status!="True"')
    wanted, ready = (q.total(q.resource(f"dsd_operator_{n}replicas"), how="max") for n in ("", "ready_"))
    in_use = q.total(q.resource("dsd_operator_schedule_pods", 'state="applied"'), how="max")
    names = {"type": "Condition", "status": "Status", "reason": "Reason"}
    hidden = {"Time": True, "Value": True}
    return [
        rows("Conditions", "What the operator says of the resource, and why; `kubectl dsd explain` tells more. "
             "(Progressing is False where all is done.)", COUNT,
             [Query(q.total(conditions, *why, how="max"), instant=True)],
             [transformation("organize", excludeByName=hidden, renameByName=names,
                             indexByName={label: place for place, label in enumerate(names)})],
             [("Status", column(custom__width=100))], width=8, height=6),
        series("Why it is not Ready", "The reason of the condition Ready while that is not True; empty while it is.",
               COUNT, Query(q.total(not_ready, "status", "reason", how="max"), "{{status}} {{reason}}"),
               look=Look("steps", highest=1, decimals=0), width=8, height=6),
        series("Pods", "Pods that are wanted, pods that are ready, and pods that are known to use the schedule.", COUNT,
               Query(wanted, "wanted"), Query(ready, "ready"), Query(in_use, "with the schedule"),
               look=Look("steps", decimals=0), width=8, height=6),
    ]  # fmt: skip


def _in_use() -> list[Placed]:
    in_use = q.total(q.engine("dsd_num_speculative_tokens"), *_ENGINE, how="max")
    steps = q.engine("dsd_steps_total")
    return [
        series("K in use against concurrency",
               "K that each engine chose for its latest step (left), and the mean number of requests in a step (right, "
               "dashed). The lines across are changes of the schedule.",
               COUNT, Query(in_use, f"K {_POD}"), Query(q.mean("dsd_step_batch_size", *_ENGINE), f"requests {_POD}"),
               look=Look("steps", decimals=0, right="^requests ", right_label="requests in a step", left_label="K")),
        series("Steps by K", "Share of the steps that verified each K. Steps that only compute prompts count as K=0.",
               RATIO, Query(q.ratio(q.rate(steps, "k"), q.rate(steps), one=True), "K={{k}}"),
               look=Look("stacked", highest=1)),
    ]  # fmt: skip


def _drafts() -> list[Placed]:
    position = q.ratio(*(q.rate(q.engine(f"dsd_{n}_tokens_per_pos_total"), "position") for n in ("accepted", "draft")))
    emitted, steps = (q.rate(q.engine(f"dsd_{n}_total"), "k") for n in ("emitted_tokens", "steps"))
    return [
        bars("Acceptance by position, now",
             "Share of the draft tokens at each position (from 0) that was accepted. It falls along the draft, since a "
             "token counts only when all before it do; where it nears 0 a smaller K costs nothing.",
             RATIO, Query(position, "{{position}}"), width=6),
        series("Acceptance by position", "Share of the draft tokens at each position that was accepted.", RATIO,
               Query(position, "position {{position}}"), look=Look(highest=1), width=6),
        series("Acceptance by K", "Share of the draft tokens that was accepted, by the K of the step.", RATIO,
               Query(q.acceptance("k"), "K={{k}}"), look=Look(highest=1), width=6),
        series("Emitted tokens in a step", "Tokens that leave an engine with each step, for all its requests, by K.",
               COUNT, Query(q.ratio(emitted, steps), "K={{k}}"), look=Look(decimals=2), width=6),
    ]  # fmt: skip


def _time() -> list[Placed]:
    seconds, count = (q.rate(q.engine(f"dsd_step_duration_seconds_{n}"), "k") for n in ("sum", "count"))
    buckets = q.engine("dsd_step_duration_seconds_bucket")
    return [
        series("Step time by K", "Mean wall time of a decode step, by K.", SECONDS,
               Query(q.ratio(seconds, count), "K={{k}}"), width=8),
        series("Step time by K, p95", "95th percentile of a decode step's wall time, by K.", SECONDS,
               Query(q.quantile(0.95, buckets, "k"), "K={{k}}"), width=8),
        series("Gain over K=0",
               "How much faster each K was than K=0 would have been at the same concurrencies; below 0 it was slower. "
               "The speed of K=0 is taken from the whole range, and only concurrencies at which K=0 has run count.",
               RATIO, Query(q.gain("k"), "K={{k}}"), look=Look(lowest=None, zero_line=True), width=8),
    ]  # fmt: skip


def _latency(title: str, text: str, metric: str) -> Placed:
    buckets = q.engine(f"{metric}_bucket")
    return series(title, text, SECONDS, *(Query(q.quantile(p, buckets), f"p{100 * p:.0f}") for p in (0.5, 0.95, 0.99)),
                  width=6)  # fmt: skip


def _beside() -> list[Placed]:
    running, waiting = (q.total(q.engine(f"vllm:num_requests_{n}")) for n in ("running", "waiting"))
    cache = q.total(q.engine("vllm:kv_cache_usage_perc"), *_ENGINE, how="max")
    return [
        series("Requests", "Requests that run, and requests that wait for room, on all engines.", COUNT,
               Query(running, "running"), Query(waiting, "waiting"), width=6),
        series("KV cache", "Used share of each engine's KV cache. A full one makes requests wait or start again.",
               RATIO, Query(cache, _POD), look=Look(highest=1), width=6),
        _latency("Time to first token", "From a request's arrival to its first token.",
                 "vllm:time_to_first_token_seconds"),
        _latency("Inter-token latency", "From one token of a request to its next. Tokens of one step come together, so "
                 "accepted drafts push the median down and show in the upper quantiles.",
                 "vllm:inter_token_latency_seconds"),
    ]  # fmt: skip


def _engines() -> list[Placed]:
    info = q.total(q.engine("dsd_plugin_info"), *_ENGINE, "version", "vllm_version", "method", "runner", "mode",
                   how="max")  # fmt: skip
    schedule = q.total(q.engine("dsd_schedule_revision_info"), *_ENGINE, "revision", "hash", "source", how="max")
    names = {"pod": "Pod", "instance": "Instance", "engine": "Engine", "method": "Method", "runner": "Runner",
             "mode": "Plugin", "revision": "Revision", "hash": "Hash", "source": "Brought by", "version": "Runtime",
             "vllm_version": "vLLM"}  # fmt: skip
    hidden = {"Time": True, "Value #A": True, "Value #B": True}
    updates = q.engine("dsd_schedule_updates_total")
    return [
        rows("Engines", "What runs in each engine, and which schedule it uses. `off`: the schedule changes only with a "
             "restart.", COUNT, [Query(info, instant=True), Query(schedule, instant=True)],
             [transformation("merge"),
              transformation("organize", excludeByName=hidden, renameByName=names,
                             indexByName={label: place for place, label in enumerate(names)})],
             [("Plugin", column(custom__cellOptions={"type": "color-text"}, mappings=[{"type": "value", "options": {
                 "on": {"color": "green", "index": 0}, "off": {"color": "red", "index": 1}}}]))], width=24, height=5),
        series("Proposed schedules", "Schedules that reached an engine, by the way they came and what became of them, "
               "in the window of a rate. Empty while none comes.", COUNT,
               Query(f"sum by (source, result) (increase({updates}[{q.RECENT}]))", "{{source}}: {{result}}"), width=8),
        series("Changes of K", "Share of the steps for which another K was chosen than for the step before, by engine.",
               RATIO, Query(q.ratio(q.rate(q.engine("dsd_num_speculative_tokens_changes_total"), *_ENGINE),
                                    q.rate(q.engine("dsd_steps_total"), *_ENGINE)), _POD), width=8),
        series("Faults", "1 while an engine serves though something is wrong: `file`, its config file is not followed; "
               "`metrics`, series are missing.", COUNT,
               Query(q.total(q.engine("dsd_fault"), "source", how="max"), "{{source}}"),
               look=Look("steps", highest=1, decimals=0), width=8),
    ]  # fmt: skip


_CHANGES: Final[dict[str, Any]] = {
    "name": "Schedule changes",
    "datasource": {"type": SOURCE.type_val, "uid": SOURCE.uid},
    "enable": True,
    "hide": False,
    "iconColor": ORANGE,
    "expr": q.new_schedule(),
    "step": "15s",
    "titleFormat": "Schedule changed",
    "textFormat": "{{hash}}",
    "tagKeys": "hash",
    "useValueForTime": False,
}


def board() -> Board:
    """The dashboard."""
    both, plugin = '{__name__=~"dsd_operator_condition|dsd_plugin_info"}', "dsd_plugin_info"
    return Board(
        "dsd-deployment",
        "DSD / Deployment",
        "One DSDDeployment: is it as it should be, which K is in use at which concurrency, and what each K earns.",
        [
            *scope(both),
            Variable("namespace", "Namespace", f'label_values({both[:-1]}, job=~"$job"}}, dsd_namespace)', ""),
            Variable("deployment", "DSDDeployment",
                     f'label_values({both[:-1]}, job=~"$job", dsd_namespace=~"$namespace"}}, dsd_name)', ""),
            Variable("model_name", "Model",
                     f'label_values({plugin}{{dsd_namespace=~"$namespace", dsd_name=~"$deployment"}}, model_name)'),
        ],
        [
            Row("", _overview()),
            Row("State", _state()),
            Row("K and concurrency", [*_in_use(), heat_map(), gain_matrix()]),
            Row("Drafts", _drafts()),
            Row("Time", _time()),
            Row("Requests (vLLM)", _beside()),
            Row("Engines", _engines()),
        ],
        [_CHANGES],
    )  # fmt: skip
