"""The queries of docs/reference/metrics.md give the right numbers: promtool asks them of counters made by hand.

The rates are those of `tests.unit.dashboards.by_hand`, here of two engine cores in one pod and one in another; so a
query that groups by too little, or that mixes concurrencies, answers something else.
"""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.docs.blocks import blocks
from tests.docs.test_queries import queries_of
from tests.unit.dashboards import by_hand
from tests.unit.rules.series import Series, engine
from tools.cluster.paths import REPOSITORY
from tools.monitoring.programs import promtool

PAGE: Final = REPOSITORY / "docs" / "reference" / "metrics.md"
QUERIES: Final = queries_of(blocks(PAGE))
BUSY, IDLE = 15, 40  # minutes; the counters stand still from minute 20 on
ENGINES: Final = (("demo-1", "0"), ("demo-1", "1"), ("demo-2", "0"))
FLAPS: Final = ("demo-1", "1")
"""It changes K in three of ten steps, and the others never."""

pytestmark = pytest.mark.integration  # promtool is fetched

Answer = Mapping[tuple[str, ...], float]
GAUGES: Final = ('dsd_plugin_info{mode="off"}', "dsd_schedule_revision_info")
"""What is asked of them has an answer whether or not engines work."""
ANSWERS: Final[tuple[tuple[tuple[str, ...], Answer], ...]] = (
    (("k", "concurrency"), {("0", "1"): 10, ("0", "4"): 20, ("2", "1"): 36, ("2", "4"): 45}),
    (("k",), {("0",): 1000 * 0.2 / 1.5, ("2",): 1000 * 0.55 / 4.5}),
    (("k",), {("0",): 50 + 50 * 0.95, ("2",): 100 + 150 * 0.9}),
    (("k",), {("2",): 25 / 40}),
    (("position",), {("0",): 16 / 20, ("1",): 9 / 20}),
    ((), {(): 1000 * 0.2 / 1.5}),
    ((), {(): 20}),
    ((), {(): 0.2 / 0.75}),
    (("pod", "instance", "engine"), {("demo-1", "demo-1:8000", "1"): 0.3}),
    (("pod", "engine"), {("demo-2", "0"): 1}),
    (("pod", "engine"), {("demo-1", "1"): 1}),
)
"""For each query on the page in its order: the labels that matter, and the value of each series."""


def _growing(a_second: float) -> list[str]:
    """Even growth for twenty minutes, then none."""
    return [f"0+{60 * a_second:.9g}x20", f"{60 * 20 * a_second:.9g}x30"]


def _counters() -> Iterator[tuple[str, dict[str, str], float]]:
    rows = {"steps": by_hand.STEPS, "emitted_tokens": by_hand.TOKENS, "step_seconds": by_hand.SECONDS,
            "draft_tokens": by_hand.DRAFTED, "accepted_tokens": by_hand.ACCEPTED}  # fmt: skip
    for name, cells in rows.items():
        for (k, concurrency), rate in cells.items():
            yield f"dsd_{name}_total", {"k": k, "concurrency": concurrency}, rate
    for (k, le), rate in by_hand.BUCKETS.items():
        yield "dsd_step_duration_seconds_bucket", {"k": k, "le": le}, rate
    for k, count, total in (("0", 1.5, 0.2), ("2", 4.5, 0.55)):
        yield "dsd_step_duration_seconds_count", {"k": k}, count
        yield "dsd_step_duration_seconds_sum", {"k": k}, total
    for position, drafted, accepted in (("0", 20, 16), ("1", 20, 9)):
        yield "dsd_draft_tokens_per_pos_total", {"position": position}, drafted
        yield "dsd_accepted_tokens_per_pos_total", {"position": position}, accepted
    yield "vllm:inter_token_latency_seconds_sum", {}, 0.2
    yield "vllm:inter_token_latency_seconds_count", {}, 10


def _series() -> Iterator[Series]:
    for pod, number in ENGINES:
        for name, labels, rate in _counters():
            yield engine(name, _growing(rate), pod, **labels, engine=number)
        changes = 0.3 * 9 if (pod, number) == FLAPS else 0
        yield engine("dsd_num_speculative_tokens_changes_total", _growing(changes), pod, engine=number)
        yield engine("dsd_plugin_info", ["1x50"], pod, engine=number, mode="off" if pod == "demo-2" else "on")
        used = "another" if (pod, number) == FLAPS else "most"
        yield engine("dsd_schedule_revision_info", ["1x50"], pod, engine=number, hash=used)
    alone = engine("dsd_schedule_revision_info", ["1x50"], "alone", hash="own")
    yield Series(alone.name, {**alone.labels, "dsd_name": "alone"}, alone.values)


def _tests() -> Iterator[dict[str, Any]]:
    for query, (labels, answer) in zip(QUERIES, ANSWERS, strict=True):
        # Rounded, since promtool compares to the last bit; `sum` leaves the labels that matter.
        expr = f"round(sum by ({', '.join(labels)}) ({query}), 1e-6)"
        samples = [{"labels": _text(dict(zip(labels, key, strict=True))), "value": round(value, 6)}
                   for key, value in answer.items()]  # fmt: skip
        yield {"expr": expr, "eval_time": f"{BUSY}m", "exp_samples": samples}
        yield {"expr": expr, "eval_time": f"{IDLE}m", "exp_samples": samples if query.startswith(GAUGES) else []}


def _text(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def test_every_query_gives_the_right_numbers_and_none_where_nothing_works(tmp_path: Path) -> None:
    case = {"interval": "1m", "input_series": [s.dump() for s in _series()], "promql_expr_test": list(_tests())}
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [case]}, width=10_000_000))
    done = subprocess.run([promtool(), "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
