"""Every series after every step of a real engine that is driven by hand, against an oracle of its own.

One process, one engine: the scripts run one after the other, and the samples of each are those since its first step.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.hand_driven import MAX_NUM_SEQS
from tests.runtime.step_oracle import Oracle, shown

pytestmark = pytest.mark.engine

Script = list[list[Any]]
Records = dict[str, list[dict[str, Any]]]

K3: list[int] = [1, 64, 3]
BY_HAND: dict[str, Script] = {
    "one request": [["table", K3], ["add", "a", 5, 20], ["drain"]],
    "K changes between steps": [
        ["table", K3], ["add", "b", 5, 60], ["step", 3], ["table", [1, 64, 1]], ["step", 2], ["table", [1, 64, 4]],
        ["step", 1], ["table", [1, 64, 2]], ["drain"],
    ],
    "K=0": [["table", [1, 64, 0]], ["add", "c", 5, 6], ["drain"]],
    "K=0 and back": [
        ["table", K3], ["add", "d", 5, 40], ["step", 3], ["table", [1, 64, 0]], ["step", 4], ["table", K3], ["drain"],
    ],
    "prompt in chunks, beside a decoding request": [
        ["table", K3], ["add", "e", 5, 30], ["step", 2], ["add", "f", 110, 5], ["drain"],
    ],
    "one token each": [["table", K3], ["add", "g", 5, 1], ["add", "h", 60, 1], ["drain"]],
    "K by batch size": [
        ["table", [1, 1, 4], [2, 2, 2], [3, 64, 0]], ["add", "i", 5, 40], ["step", 3], ["add", "j", 5, 25], ["step", 3],
        ["add", "k", 5, 10], ["add", "l", 5, 10], ["drain"],
    ],
    "aborts": [
        ["table", K3], *(["add", f"m{n}", 5, 40] for n in range(4)), ["step", 3], ["abort", "m0"], ["step", 1],
        ["abort_in_flight", "m1"], ["step", 2], ["abort_in_flight", "m2"], ["abort_in_flight", "m3"], ["step", 1],
        ["drain"],
    ],
    "preemption": [["table", K3], *(["add", f"n{n}", 40, 90] for n in range(7)), ["drain"]],
    "idle, pause": [
        ["table", K3], ["add", "o", 5, 12], ["step", 3], ["pause"], ["step", 2], ["drain"], ["wait"],
        ["add", "p", 5, 12], ["drain"],
    ],
}  # fmt: skip
RANDOM: dict[str, Script] = {f"random load {seed}": [["fuzz", seed, 150]] for seed in (1, 2)}


def play(models: Path, folder: Path, scripts: dict[str, Script], log_stats: bool = True) -> Records:
    """Run the scripts in a process of their own."""
    result = folder / "records.json"
    order = {"models": str(models), "scripts": scripts, "result": str(result), "log_stats": log_stats}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["runtime", "operator", "."])}
    command = [sys.executable, "-m", "tests.runtime.hand_driven"]
    done = subprocess.run(command, input=json.dumps(order), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    found: Records = json.loads(result.read_text())
    return found


@pytest.fixture(scope="module")
def records(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """What happened in all scripts."""
    return play(models, tmp_path_factory.mktemp("by-hand"), BY_HAND | RANDOM)


@pytest.fixture(scope="module")
def judged(records: Records) -> dict[str, Counter[str]]:
    """Every step of every script against the oracle, which goes through all of them; its notes on each script."""
    oracle, notes = Oracle(MAX_NUM_SEQS), dict[str, Counter[str]]()
    for title, steps in records.items():
        oracle.seen = Counter()
        for number, record in enumerate(steps):
            oracle.step(record)
            assert shown(record["series"]) == oracle.samples(), f"{title}, step {number}"
        notes[title] = oracle.seen
    return notes


def test_every_series_is_exact_after_every_step(judged: dict[str, Counter[str]], records: Records) -> None:
    assert set(judged) == set(records)
    assert sum(len(steps) for steps in records.values()) > 300


def test_what_should_happen_did(judged: dict[str, Counter[str]]) -> None:
    """Each situation that the scripts are for is in them; else the comparison would prove less than it says."""
    assert judged["K=0"]["K=0 steps"] == 5
    assert judged["K=0 and back"]["K=0 steps"] >= 3
    assert judged["prompt in chunks, beside a decoding request"]["prefill steps"] == 1
    assert judged["one token each"]["prefill steps"] == 2
    assert judged["aborts"]["aborted in flight"] == 3
    assert judged["preemption"]["resumed"] > 0
    everything = sum(judged.values(), Counter[str]())
    for what in ("cut by a limit", "cut by a stop", "priced steps", "resumed", "aborted in flight"):
        assert everything[what] > 0, what


def test_counters_only_grow(records: Records) -> None:
    before: dict[tuple[str, str], float] = {}
    for record in (record for steps in records.values() for record in steps):
        now = {(n, labels): v for n, found in record["series"].items() for labels, v in found.items() if is_counter(n)}
        assert all(now[key] >= value for key, value in before.items())
        before = now
    assert before


def is_counter(name: str) -> bool:
    """Whether samples of that name only grow."""
    return name.endswith(("_total", "_bucket", "_sum", "_count"))


def test_totals_equal_vllms_own(records: Records) -> None:
    stats = [record["vllm"] for steps in records.values() for record in steps if record.get("vllm")]
    series = [steps for steps in records.values() if steps][-1][-1]["series"]
    for ours, vllm in (("draft", "num_draft_tokens"), ("accepted", "num_accepted_tokens")):
        assert sum(series[f"dsd_{ours}_tokens_total"].values()) == sum(s[vllm] for s in stats) > 0
        by_position = [sum(s[f"{vllm}_per_pos"][i] for s in stats) for i in range(4)]
        assert [series[f"dsd_{ours}_tokens_per_pos_total"][f"position={i}"] for i in range(4)] == by_position
    assert series["dsd_draft_tokens_per_pos_total"]["position=0"] == sum(s["num_drafts"] for s in stats)


def test_time_is_priced_or_nobodys_and_never_more_than_passed(records: Records) -> None:
    every = [record for steps in records.values() for record in steps]
    priced = sum(every[-1]["series"]["dsd_step_seconds_total"].values())
    passed = every[-1]["end"] - every[0]["end"]
    assert 0 < priced < passed
    assert priced == sum(every[-1]["series"]["dsd_step_duration_seconds_sum"].values())


def test_histograms_hold_each_step_once(records: Records) -> None:
    for record in (record for steps in records.values() for record in steps):
        series = record["series"]
        steps = sum(series["dsd_steps_total"].values())
        assert series["dsd_step_batch_size_bucket"]["le=+Inf"] == steps == series["dsd_step_batch_size_count"][""]


def test_drafts_are_counted_without_vllms_statistics_too(models: Path, tmp_path: Path) -> None:
    """`--disable-log-stats` leaves vLLM's counters out, and ours in."""
    scripts = {title: BY_HAND[title] for title in ("K changes between steps", "aborts")}
    oracle = Oracle(MAX_NUM_SEQS)
    for title, steps in play(models, tmp_path, scripts, log_stats=False).items():
        for number, record in enumerate(steps):
            assert record.get("vllm") is None
            oracle.step(record)
            assert shown(record["series"]) == oracle.samples(), f"{title}, step {number}"
    assert sum(value for (name, _), value in oracle.samples().items() if name == "dsd_draft_tokens_total") > 0
