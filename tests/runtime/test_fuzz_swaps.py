"""Random valid schedules, swapped between any two steps of a mixed load: outputs equal those without speculation.

`fuzz_player` plays it in a process with a real engine; here the results are compared and it is shown that the load was
what it claims: preemptions, prompts in chunks, aborts, every K from 0 to the maximum, drafts that were accepted. The
short cut runs with the other engine tests; the campaign is `make test-long` (docs/development/campaigns.md).
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.runtime import fuzz_lora
from tests.runtime.fuzz_compare import Comparison, compare
from tests.runtime.fuzz_load import KINDS
from tests.runtime.fuzz_player import Plan
from tests.runtime.fuzz_random import again, seed

pytestmark = pytest.mark.engine

MAXIMUM = 4
FEW_BLOCKS = 20
"""640 tokens for up to 12 requests of up to 400: not enough, so requests are preempted."""

MOST_SECONDS = 4 * 3600


def speculative(models: Path, method: str) -> dict[str, Any]:
    """vLLM's speculative config of a method."""
    config: dict[str, Any] = {"method": method, "num_speculative_tokens": MAXIMUM}
    if method == "ngram":
        return config | {"prompt_lookup_min": 1, "prompt_lookup_max": 4}
    return config | {"model": str(models / {"draft_model": "draft"}.get(method, method))}


def play(folder: Path, plans: list[Plan]) -> list[dict[str, Any]]:
    """Play plans in a process of their own; fails with its log."""
    config, metrics, log = folder / "config.yaml", folder / "metrics", folder / "log"
    metrics.mkdir()
    config.write_text("ranges: [{startBatchSize: 1, endBatchSize: 4, numSpeculativeTokens: 2}]")
    (folder / "plans.json").write_text(json.dumps([asdict(plan) for plan in plans]))
    environment = {
        "DSD_CONFIG": str(config),
        "PROMETHEUS_MULTIPROC_DIR": str(metrics),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "TORCH_COMPILE_DISABLE": "1",  # compiling takes longer than a short campaign
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-m", "tests.runtime.fuzz_player", str(folder / "plans.json"), str(folder / "results")]
    with log.open("wb") as out:
        ended = subprocess.run(command, stdout=out, env=os.environ | environment, timeout=MOST_SECONDS, check=False)
    assert ended.returncode == 0, log.read_text()[-6000:]
    results: list[dict[str, Any]] = json.loads((folder / "results").read_text())
    return results


def check_equal(plan: Plan, result: dict[str, Any]) -> Comparison:
    """Every token is the one without speculation, every logprob close to it."""
    found = compare(plan.seed, plan.lora is not None, result)
    assert not found.differences, f"{len(found.differences)} differ {again(plan.seed)}: {found.differences[:3]}"
    assert found.ties <= found.tokens / 10_000
    assert found.tokens > 3 * plan.swaps
    assert found.logprobs > plan.swaps / 10
    return found


def check_load(plan: Plan, result: dict[str, Any], found: Comparison) -> None:
    """The campaign was what it claims to be."""
    played, counters = result["with"], result["with"]["counters"]
    assert played["plugin"], "the plugin failed on the way"
    assert played["swaps"]["put"] + played["swaps"]["file"] >= plan.swaps
    assert played["swaps"]["file"] > 0
    assert set(played["swaps"]["refused"]) == {"stale", "invalid"}
    steps = {k: counters.get(f"dsd_steps_total {k}", 0) for k in range(MAXIMUM + 1)}
    assert all(n >= max(1, plan.swaps / 100) for n in steps.values()), steps
    assert sum(steps.values()) <= played["steps"]
    assert counters["vllm:spec_decode_num_accepted_tokens_total"] > plan.swaps / 4
    assert counters["vllm:num_preemptions_total"] > 0
    assert played["chunked"] > 0
    assert found.aborted > 0
    missing = "prompt logprobs" if plan.lora else "lora"
    assert set(found.requests) == set(KINDS) - {missing}
    said = {name: played[name] for name in ("swaps", "steps", "chunked")}
    said |= {"steps by K": steps, "preemptions": counters["vllm:num_preemptions_total"], "compared": found}
    print(f"swaps {plan.speculative}, LoRA {plan.lora is not None} {again(plan.seed)}: {said}")


def campaign(models: Path, folder: Path, parts: list[tuple[str, bool, int]], number: int) -> None:
    """Play so many swaps for each (method, LoRA) with this seed, and check them all."""
    adapter = str(fuzz_lora.write(folder / "adapter"))
    plans = [
        Plan(number, str(models / "target"), FEW_BLOCKS, adapter if lora else None, speculative(models, method), swaps)
        for method, lora, swaps in parts
    ]
    try:
        for plan, result in zip(plans, play(folder, plans), strict=True):
            check_load(plan, result, check_equal(plan, result))
    except BaseException as error:
        error.add_note(again(number))
        raise


SHORT = [("ngram", False, 60), ("draft_model", False, 40)]
LONG = [("ngram", False, 700), ("draft_model", False, 700), ("eagle", False, 450), ("ngram", True, 150)]


def test_swaps(models: Path, tmp_path: Path) -> None:
    """With a seed that has been tried: a short load shows preemptions and every K with most seeds, not with all."""
    campaign(models, tmp_path, SHORT, seed(7))


@pytest.mark.long
@pytest.mark.parametrize("part", LONG, ids=lambda part: f"{part[0]}{'-lora' * part[1]}")
def test_swaps_campaign(models: Path, tmp_path: Path, part: tuple[str, bool, int]) -> None:
    """2,000 swaps in all. LoRA slows vLLM down on a CPU by an order of magnitude, hence its small share."""
    campaign(models, tmp_path, [part], seed())
