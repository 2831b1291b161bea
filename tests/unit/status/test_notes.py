"""Remarks in a status in which nothing is wrong: what vLLM resolved otherwise, and what has a catch."""

from typing import Any, Final

import pytest

from tests.unit.status.cluster import answer, deployment, observed, outcome, pod, push
from tests.unit.status.test_summarize import ALL_WELL, SERVING, conditions


def test_what_vllm_resolved_differently_is_said() -> None:
    resolved = answer("mtp", model_runner="V2", num_speculative_tokens=2, max_num_seqs=64, parallel_drafting=True)
    done = outcome([push(status=resolved), push("demo-2", status=resolved)])
    ready = conditions(SERVING, done, engine={"modelRunner": "V1", "maxNumSeqs": 128})["Ready"]
    assert ready["status"] == "True"
    assert ready["message"].split("; ")[1:] == [
        "drafter.method is ngram, vLLM resolved it to mtp",
        "drafter.numSpeculativeTokens is 3, vLLM resolved it to 2",
        "engine.maxNumSeqs is 128, vLLM resolved it to 64",
        "engine.modelRunner is V1, vLLM resolved it to V2",
        "vLLM turned parallel drafting on",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"drafter.preparedTokens": [0, 3]}, "K=1 is outside drafter.preparedTokens (0, 3)"),
        ({"schedule": [{"startBatchSize": 1, "endBatchSize": 9, "numSpeculativeTokens": 0}]}, "nothing is drafted"),
        ({"engine.maxNumSeqs": 4}, "ranges from 9 on are never reached: max_num_seqs is 4"),
    ],
)
def test_schedules_with_a_catch_apply_with_a_remark(changes: dict[str, Any], words: str) -> None:
    applied = conditions(SERVING, outcome([push()]), **changes)["ScheduleApplied"]
    assert applied["status"] == "True"
    assert words in applied["message"]


def test_the_limit_that_vllm_chose_is_used_where_the_spec_names_none() -> None:
    done = outcome([push(status=answer(max_num_seqs=8))])
    assert "max_num_seqs is 8" in conditions(SERVING, done)["ScheduleApplied"]["message"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"engine.maxNumSeqs": 60, "engine.extraArgs": ["--max-num-batched-tokens", "120"]},
            "a full batch does not fit into one step: --max-num-batched-tokens is 120",
        ),
        (
            {
                "drafter": {"method": "eagle", "model": "acme/h", "numSpeculativeTokens": 3, "tensorParallelSize": 1},
                "engine.tensorParallelSize": 4,
            },
            "drafter.tensorParallelSize 1 has no effect",
        ),
        (
            {"engine.extraArgs": ["--api-key", "$(KEY)", "--seed=$(S)$(KEY)"]},
            "engine.extraArgs has $(KEY), $(S), which reaches vLLM as it is written",
        ),
    ],
)
def test_an_envelope_with_a_catch_is_ready_with_a_remark(changes: dict[str, Any], words: str) -> None:
    ready = conditions(SERVING, outcome([push()]), **changes)["Ready"]
    assert (ready["status"], ready["reason"]) == ("True", "Ready")
    assert words in ready["message"]


PROMETHEUS: Final[list[Any]] = [{"podSelector": {}}]


@pytest.mark.parametrize(
    ("policy", "monitor", "named", "told"),
    [
        ({"enabled": True}, True, False, True),
        ({"enabled": True, "monitoring": []}, True, True, True),
        ({"enabled": True}, True, True, False),
        ({"enabled": True, "monitoring": PROMETHEUS}, True, False, False),
        ({"enabled": True}, False, False, False),
        ({"enabled": False}, True, False, False),
    ],
)
def test_a_policy_that_cuts_off_the_resources_own_monitor_is_told(
    policy: dict[str, Any], monitor: bool, named: bool, told: bool
) -> None:
    asked = {"networkPolicy": policy, "monitoring": {"podMonitor": {"enabled": monitor}}}
    seen = observed(deployment(), [pod()], monitoring_named=named)
    ready = conditions(seen, ALL_WELL, **asked)["Ready"]
    assert ready["status"] == "True"
    assert ("the NetworkPolicy names no monitoring" in ready["message"]) is told


@pytest.mark.parametrize(
    "changes",
    [
        {"engine.maxNumSeqs": 30, "engine.extraArgs": ["--max-num-batched-tokens", "120"]},
        {"engine.extraArgs": ["--max-num-batched-tokens", "120"]},
        {"engine.extraArgs": ["--chat-template", "{$(a b)} $$ $( costs 5$", "$(date -u)"]},
        {
            "drafter": {"method": "draft_model", "model": "a/d", "numSpeculativeTokens": 3, "tensorParallelSize": 4},
            "engine.tensorParallelSize": 4,
        },
    ],
)
def test_an_envelope_without_one_is_not_remarked_on(changes: dict[str, Any]) -> None:
    assert conditions(SERVING, outcome([push()]), **changes)["Ready"]["message"] == "1 of 1 pods serve"
