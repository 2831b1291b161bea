"""An hour of series made by hand, whose every rate is known: two pods of one DSDDeployment, one of them replaced.
(Of a second one, `twin`, there is only its schedule: the same.)

All counters grow evenly, so a rate over any window is exactly the number written here. Per second and pod:

    k, concurrency   steps   tokens   priced seconds       k   priced steps   share of priced steps
    0, 1                 2        2              0.1       0            1.5                     1/2
    0, 4                 1        4              0.1       2            4.5                     3/4
    2, 1                 1      2.4             0.05
    2, 4                 5       30              0.5

So K=0 emits 2 / 0.1 * 1/2 = 10 tokens a second at concurrency 1 and 20 at 4, K=2 emits 36 and 45.
"""

from collections.abc import Iterator, Mapping
from typing import Final

START: Final = 1_700_000_000
END: Final = START + 3600
SWITCH: Final = START + 1800
"""Pod b ends and pod c begins; the schedule changes."""

_SCRAPE: Final = 15
_TARGET: Final = {"job": "engines", "dsd_namespace": "chat", "dsd_name": "llama", "namespace": "chat"}
_ENGINE: Final = {**_TARGET, "model_name": "m", "engine": "0"}
_OPERATOR: Final = {"job": "operator", "instance": "10.0.0.9:8080", "namespace": "dsd-operator"}
_RESOURCE: Final = {**_OPERATOR, "dsd_namespace": "chat", "dsd_name": "llama"}

Labels = Mapping[str, str]
Rows = Mapping[tuple[str, str], float]

STEPS: Final[Rows] = {("0", "1"): 2, ("0", "4"): 1, ("2", "1"): 1, ("2", "4"): 5}
TOKENS: Final[Rows] = {("0", "1"): 2, ("0", "4"): 4, ("2", "1"): 2.4, ("2", "4"): 30}
SECONDS: Final[Rows] = {("0", "1"): 0.1, ("0", "4"): 0.1, ("2", "1"): 0.05, ("2", "4"): 0.5}
DRAFTED: Final[Rows] = {("2", "1"): 2, ("2", "4"): 38}
ACCEPTED: Final[Rows] = {("2", "1"): 1, ("2", "4"): 24}
BUCKETS: Final[Rows] = {
    ("0", "0.05"): 0, ("0", "0.1"): 1.5, ("0", "+Inf"): 1.5,
    ("2", "0.05"): 0, ("2", "0.1"): 2.25, ("2", "0.25"): 4.5, ("2", "+Inf"): 4.5,
}  # fmt: skip
APPLY: Final = {"0.1": 0.002, "0.2": 0.008, "+Inf": 0.01}
PASSES: Final = {"success": 0.9, "retry": 0.06, "error": 0.04}

PODS: Final = {"a": (START, END), "b": (START, SWITCH), "c": (SWITCH, END)}


def history() -> str:
    """All of it as OpenMetrics with times."""
    lines: list[str] = []
    for name, series in _families().items():
        lines.append(f"# TYPE {name.removesuffix('_total')} {'counter' if name.endswith('_total') else 'unknown'}")
        for labels, (start, end), rate, base in series:
            text = ",".join(f'{label}="{value}"' for label, value in labels.items())
            moments = range(start, end + 1, _SCRAPE)
            lines += (f"{name}{{{text}}} {base + rate * (moment - start):.9f} {moment}" for moment in moments)
    return "\n".join([*lines, "# EOF", ""])


Series = tuple[Labels, tuple[int, int], float, float]
"""Labels, first and last moment, growth in a second, first value."""


def _families() -> dict[str, list[Series]]:
    found: dict[str, list[Series]] = {}
    for pod, times in PODS.items():
        target = {**_ENGINE, "pod": f"llama-{pod}", "instance": f"10.0.0.{ord(pod) - 96}:8000"}
        for name, labels, rate, base in (*_counters(), *_gauges()):
            found.setdefault(name, []).append(({**target, **labels}, times, rate, base))
    for pod, times, revision in (("a", (START, SWITCH - _SCRAPE), "1"), ("a", (SWITCH, END), "2")):
        target = {**_ENGINE, "pod": f"llama-{pod}", "instance": "10.0.0.1:8000"}
        info = {"revision": revision, "hash": f"hash{revision}", "source": "http"}
        found.setdefault("dsd_schedule_revision_info", []).append(({**target, **info}, times, 0, 1))
    twin = {**_ENGINE, "dsd_name": "twin", "pod": "twin-a", "instance": "10.0.0.4:8000"}
    same = {"revision": "1", "hash": "hash2", "source": "file"}
    found["dsd_schedule_revision_info"].append(({**twin, **same}, (START, END), 0, 1))
    for name, labels, rate, base in _of_the_operator():
        found.setdefault(name, []).append((labels, (START, END), rate, base))
    return found


def _counters() -> Iterator[tuple[str, Labels, float, float]]:
    rows = {"steps": STEPS, "emitted_tokens": TOKENS, "step_seconds": SECONDS, "draft_tokens": DRAFTED,
            "accepted_tokens": ACCEPTED}  # fmt: skip
    for name, cells in rows.items():
        for (k, concurrency), rate in cells.items():
            yield f"dsd_{name}_total", {"k": k, "concurrency": concurrency}, rate, 0
    for (k, le), rate in BUCKETS.items():
        yield "dsd_step_duration_seconds_bucket", {"k": k, "le": le}, rate, 0
    for k, count, total in (("0", 1.5, 0.2), ("2", 4.5, 0.55)):
        yield "dsd_step_duration_seconds_count", {"k": k}, count, 0
        yield "dsd_step_duration_seconds_sum", {"k": k}, total, 0
    for position, drafted, accepted in (("0", 20, 16), ("1", 20, 9)):
        yield "dsd_draft_tokens_per_pos_total", {"position": position}, drafted, 0
        yield "dsd_accepted_tokens_per_pos_total", {"position": position}, accepted, 0
    yield "dsd_num_speculative_tokens_changes_total", {}, 0.9, 0
    yield "dsd_step_batch_size_sum", {}, 27, 0
    yield "dsd_step_batch_size_count", {}, 9, 0


def _gauges() -> Iterator[tuple[str, Labels, float, float]]:
    for start, end, k in (("1", "4", 2), ("5", "64", 0)):
        yield "dsd_schedule_num_speculative_tokens", {"start": start, "end": end}, 0, k
    yield "dsd_num_speculative_tokens", {}, 0, 2
    yield (
        "dsd_plugin_info",
        {"version": "1", "vllm_version": "2", "method": "ngram", "runner": "V1", "mode": "on"},
        0,
        1,
    )


def _of_the_operator() -> Iterator[tuple[str, Labels, float, float]]:
    for result, rate in PASSES.items():
        yield "dsd_operator_reconcile_total", {**_OPERATOR, "result": result}, rate, 0
    for le, rate in APPLY.items():
        yield "dsd_operator_schedule_apply_seconds_bucket", {**_OPERATOR, "le": le}, rate, 0
    for name in ("llama", "idle"):
        resource = {**_RESOURCE, "dsd_name": name}
        ready = {"type": "Ready", "status": "True" if name == "llama" else "False", "reason": "Why"}
        yield "dsd_operator_condition", {**resource, **ready}, 0, 1
        yield "dsd_operator_replicas", resource, 0, 3
        yield "dsd_operator_ready_replicas", resource, 0, 2
        for state, count in (("applied", 2), ("unknown", 1), ("out_of_sync", 0)):
            yield "dsd_operator_schedule_pods", {**resource, "state": state}, 0, count
