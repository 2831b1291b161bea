"""The arithmetic of the runtime's benchmarks: pairs, the choice of a table, and that each requirement can fail."""

from typing import Any

import pytest

from bench.results import extent, path_of, read
from bench.runtime import PARTS
from bench.runtime_plan import rotated
from bench.runtime_ratios import (
    FIXED,
    NONE,
    OURS,
    STOCK,
    best_fixed,
    choose,
    comparisons,
    fixed,
    geometric_mean,
    pairs,
    rollout_required,
    swapcost_required,
    sweep_required,
    whole,
)
from bench.runtime_workloads import closed_loop, prompt, rollout

CELLS = [(workload, concurrency) for workload in ("edit", "chat") for concurrency in (1, 16)]
GOOD = {(1, "edit"): (50, 60, 90, 100), (16, "edit"): (100, 110, 90, 80), (1, "chat"): (50, 49, 48, 47)} | {
    (16, "chat"): (100, 80, 70, 60)
}


def sweep_rows(ours: float = 1.0, stock: float = 1.0, rounds: int = 5) -> list[dict[str, Any]]:
    """A sweep whose schedule is right in every cell; ours at `ours` times, stock at `stock` times the best fixed K."""
    rows = []
    for workload, concurrency in CELLS:
        values: dict[str, float] = dict(zip(map(fixed, FIXED), GOOD[concurrency, workload], strict=True))
        best = max(values.values())
        values |= {NONE: values[fixed(0)] * 1.25, STOCK: best * stock, OURS: best * ours}
        for name, value in values.items():
            samples = [value * drift for drift in (1, 0.5, 2, 1, 1, 1)[:rounds]]
            rows.append({"workload": workload, "concurrency": concurrency, "configuration": name, "samples": samples})
    return rows


def met(rows: list[dict[str, Any]]) -> dict[str, bool]:
    return {r.name: r.met for r in sweep_required(rows)}


def test_a_ratio_is_taken_within_a_round() -> None:
    assert pairs([1, 2, 30], [1, 4, 60]) == [1.0, 0.5, 0.5]
    with pytest.raises(ValueError, match="longer"):
        pairs([1], [1, 2])


def test_extent_and_geometric_mean() -> None:
    assert extent([3.0, 1.0, 2.0]) == {"min": 1.0, "median": 2.0, "max": 3.0}
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)


def test_a_good_sweep_meets_everything_although_the_machine_drifts() -> None:
    assert all(met(sweep_rows()).values())


def test_each_requirement_of_the_sweep_can_fail() -> None:
    slow = met(sweep_rows(ours=0.94, stock=0.94))
    assert not slow["ours / best fixed K at concurrency 1 (goal 0.98)"]
    assert slow["ours / stock vLLM with the same table"]
    assert not met(sweep_rows(ours=0.98))["ours / stock vLLM with the same table"]
    assert not met(sweep_rows(rounds=4))["rounds"]
    assert not met(sweep_rows(ours=0.7))["ours / fixed K=0, whole sweep"]
    one_cell = sweep_rows()
    for row in one_cell:
        if row["configuration"] == OURS and (row["workload"], row["concurrency"]) == ("chat", 16):
            row["samples"] = [value * 0.9 for value in row["samples"]]
    assert [name for name, fine in met(one_cell).items() if not fine] == [
        "ours / best fixed K at concurrency 16 (goal 0.98)",
        "ours / stock vLLM with the same table",
    ]


def test_the_best_fixed_k_is_one_configuration() -> None:
    rows = sweep_rows()
    assert [best_fixed(rows, cell) for cell in CELLS] == ["fixed K=5", "fixed K=1", "fixed K=0", "fixed K=0"]
    assert whole(rows, OURS, fixed(5)) == pytest.approx([geometric_mean([1, 110 / 80, 50 / 47, 100 / 60])] * 5)


def test_the_tax_of_k_0_is_among_the_comparisons() -> None:
    tax = [row for row in comparisons(sweep_rows()) if row["comparison"] == "K=0 / none"]
    assert len(tax) == len(CELLS)
    assert {row["ratio"]["median"] for row in tax} == {0.8}


def test_the_table_keeps_k_where_a_profile_cannot_tell() -> None:
    profile: dict[int, dict[int, list[float]]] = {
        1: {0: [10, 10], 3: [20, 20], 5: [20.1, 20.1]},
        4: {0: [40, 40], 3: [50.5, 50.5], 5: [50, 50]},
        16: {0: [90, 90], 3: [60, 60], 5: [50, 50]},
        32: {0: [99, 99], 3: [100, 100], 5: [50, 50]},
    }
    assert choose(profile, 64) == ((1, 4, 5), (5, 64, 0))
    assert choose(profile, 64, margin=0.0) == ((1, 1, 5), (2, 4, 3), (5, 16, 0), (17, 64, 3))


def test_rollout_and_swap_cost_can_fail() -> None:
    def seconds(ours: float) -> list[dict[str, Any]]:
        names = [*(fixed(k) for k in FIXED), NONE]
        rows = [{"configuration": name, "samples": [10.0] * 5} for name in names]
        return [{"table": []}, *rows, {"configuration": OURS, "samples": [ours] * 5}]

    assert all(r.met for r in rollout_required(seconds(9.0)))
    assert not any(r.met for r in rollout_required(seconds(11.0))[:-1])

    def swaps(with_swaps: float, rate: float) -> list[dict[str, Any]]:
        common = {"run_seconds": [60.1] * 5}
        return [
            {"condition": "no swaps", "samples": [100.0] * 5, **common},
            {"condition": "swaps", "samples": [with_swaps] * 5, "swaps_per_second": [rate] * 5, **common},
        ]

    assert all(r.met for r in swapcost_required(swaps(98.1, 99.9)))
    assert [r.met for r in swapcost_required(swaps(97.9, 90.0))] == [False, False, True, True]


def test_every_round_begins_with_another_configuration() -> None:
    orders = [rotated("abc", number) for number in range(4)]
    assert ["".join(order) for order in orders] == ["abc", "bca", "cab", "abc"]


def test_the_workloads_are_the_same_each_time_and_their_prompts_differ() -> None:
    assert rollout(3) == rollout(3) != rollout(4)
    assert len({prompt("edit", number) for number in range(48)}) == 48
    assert len({prompt("chat", number) for number in range(32)}) == 32
    batches = [sorted(task.tokens for task in rollout(number)) for number in range(10)]
    tails = sorted(lengths[-1] / lengths[len(lengths) // 2] for lengths in batches)
    assert tails[len(tails) // 2] > 4, "the tail is long"
    assert all(len({task.prompt for task in rollout(number)}) == 32 for number in range(10))
    for concurrency in (1, 32):
        tasks = closed_loop("edit", concurrency, 48)
        assert len(tasks) >= max(2, concurrency)
        assert len({task.tokens for task in tasks}) > 1


def test_an_edit_asks_for_a_name_that_stands_in_the_text() -> None:
    for number in range(48):
        asked, _, text = prompt("edit", number).partition("\n\n")
        name = asked.partition("change the name ")[2].partition(" to ")[0]
        assert name in text
        assert "{" not in text.replace("settings = {}", "")


def test_what_is_stored_follows_from_its_data() -> None:
    for name, part in PARTS.items():
        if path_of(name).exists():
            stored = read(name)
            assert stored.required == part.required(stored.data), name
