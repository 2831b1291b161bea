"""The course of the runtime's benchmarks, with engines whose speed is a formula: what runs, in which order, and that
the right table is found and put into use. The real engines are in tests/runtime/test_bench_engine.py."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import plots, runtime, runtime_rollout, runtime_swapcost, runtime_sweep
from bench.results import Result
from bench.runtime_engine import EngineSpec, Run, Triples
from bench.runtime_plan import FULL, Plan
from bench.runtime_ratios import OURS, STOCK
from bench.runtime_workloads import Task

PLAN = replace(FULL, concurrencies=(1, 16), rounds=5)


class FormulaEngine:
    """Gains 0.2 per draft token on edits, loses what verification costs, which grows with the batch."""

    def __init__(self, spec: EngineSpec) -> None:
        self.spec, self.table = spec, spec.table

    def _k(self, batch: int) -> int:
        for start, end, k in self.table or ():
            if start <= batch <= end:
                return k
        return self.spec.tokens or 0

    def run(self, tasks: Sequence[Task], concurrency: int) -> Run:
        k, edits = self._k(concurrency), sum(task.repetition_penalty == 1 for task in tasks) / len(tasks)
        tokens = sum(task.tokens for task in tasks)
        speed = 50 * concurrency**0.5 * (1 + 0.2 * k * edits) / (1 + 0.01 * k * concurrency)
        return Run(tokens / speed, tokens, tokens, k, k)

    def call(self, method: str, *arguments: Any) -> Any:
        if method == "run":
            tasks, concurrency, seconds, swaps = arguments
            run = self.run(tasks, concurrency)
            return replace(run, swaps=int(seconds * swaps[1]) if swaps else 0, seconds=seconds, swap_seconds=0.1)
        if method == "versions":
            return {"vllm": "0"}
        return [{"function": "f", "milliseconds": 1.0, "calls": 1.0}]


class FormulaPool:
    """Engines that a Pool would start; `log` says what was done to them."""

    log: list[str]

    def __init__(self) -> None:
        self.members: dict[str, FormulaEngine] = {}

    def __enter__(self) -> "FormulaPool":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def __getitem__(self, name: str) -> FormulaEngine:
        return self.members[name]

    def start(self, spec: EngineSpec) -> FormulaEngine:
        self.log.append(f"start {spec.name}")
        self.members[spec.name] = FormulaEngine(spec)
        return self.members[spec.name]

    def put(self, name: str, table: Triples) -> None:
        self.log.append(f"put {name}")
        self.members[name].table = table


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    FormulaPool.log = []
    for part in (runtime_sweep, runtime_rollout, runtime_swapcost):
        monkeypatch.setattr(part, "Pool", FormulaPool)
    return FormulaPool.log


def test_the_sweep_finds_each_table_and_changes_it_as_the_product_does(log: list[str]) -> None:
    rows, versions = runtime_sweep.measure("model", PLAN)
    assert versions == {"vllm": "0"}
    tables = {row["workload"]: row["table"] for row in rows if "table" in row}
    assert tables == {"edit": [[1, 32, 5]], "chat": [[1, 32, 0]]}
    assert log.count(f"start {STOCK}") == 2, "stock vLLM needs a restart"
    assert (log.count(f"start {OURS}"), log.count(f"put {OURS}")) == (1, 1), "ours does not"
    measured = [row for row in rows if "configuration" in row]
    assert len(measured) == 2 * 2 * len(runtime_sweep.CONFIGURATIONS)
    assert all(len(row["samples"]) == 5 for row in measured)
    assert all(r.met for r in runtime.PARTS["sweep"].required(rows))


def test_the_rollout_and_the_swaps_give_rows_that_their_requirements_read() -> None:
    rows, _ = runtime_rollout.measure("model", PLAN)
    assert len([row for row in rows if "configuration" in row]) == len(runtime_rollout.CONFIGURATIONS)
    assert runtime.PARTS["rollout"].required(rows)
    rows, _ = runtime_swapcost.measure("model", PLAN)
    assert all(r.met for r in runtime.PARTS["swapcost"].required(rows))


@pytest.mark.parametrize("name", runtime.PARTS)
def test_a_part_writes_a_file_that_the_page_can_show(name: str, tmp_path: Path) -> None:
    plan = Plan(concurrencies=(1, 16), rounds=2, profile_rounds=1)
    runtime.run(name, "model", plan, tmp_path)
    stored = Result.model_validate_json((tmp_path / f"{name}.json").read_text())
    assert stored.required == runtime.PARTS[name].required(stored.data)
    assert plots.svg(name, stored)
