"""What CEL cannot see is found before a pod is made, and a bad envelope does not hold up the schedule."""

from typing import Any

import pytest

from dsd_operator.render.preflight import envelope_problems, problems, schedule_problems
from tests.unit.resources import manifests, resource


def ranges(*tokens: int) -> list[dict[str, int]]:
    return [
        {"startBatchSize": 10 * i + 1, "endBatchSize": 10 * i + 10, "numSpeculativeTokens": k}
        for i, k in enumerate(tokens)
    ]


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"schedule": ranges(5, 3)}, "spec.schedule[0].numSpeculativeTokens", "restarts the engine"),
        ({"schedule": ranges(3)[:1] * 2}, "spec.schedule[1].startBatchSize", "must not overlap"),
        (
            {"drafter": {"method": "suffix", "numSpeculativeTokens": 3}, "schedule": ranges(3, 1)},
            "spec.schedule[1].numSpeculativeTokens",
            "K=1 is refused",
        ),
        (
            {
                "drafter": {"method": "draft_model", "model": "a/b", "numSpeculativeTokens": 3,
                            "parameters": {"parallel_drafting": True}},
                "schedule": ranges(3, 2),
            },
            "spec.schedule[1].numSpeculativeTokens",
            "parallel drafting",
        ),
    ],
)  # fmt: skip
def test_a_schedule_that_cannot_be_used_reaches_neither_file_nor_pod(
    changes: dict[str, Any], path: str, words: str
) -> None:
    (problem,) = schedule_problems(resource(changes))
    assert problem.field == path
    assert words in problem.message
    assert list(manifests(resource(changes))) == ["ServiceAccount", "Service", "PodDisruptionBudget"]


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"engine.extraArgs": ["--max_num_seq=4"]}, "spec.engine.extraArgs[0]", "maxNumSeqs"),
        ({"engine.extraArgs": ["--port", "1"]}, "spec.engine.extraArgs[0]", "--port"),
        ({"engine.extraArgs": ["--seed 0"]}, "spec.engine.extraArgs[0]", "two items"),
        ({"engine.env": [{"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "1"}]},
         "spec.engine.env[name=VLLM_USE_V2_MODEL_RUNNER]", "modelRunner"),
        ({"engine.env": [{"name": "PROMETHEUS_MULTIPROC_DIR", "value": "/x"}]},
         "spec.engine.env[name=PROMETHEUS_MULTIPROC_DIR]", "metrics"),
        ({"podTemplate.spec.containers": [{"name": "proxy"}, {"name": "engine", "env": [{"name": "VLLM_PLUGINS"}]}]},
         "spec.podTemplate.spec.containers[1].env[name=VLLM_PLUGINS]", "plugins"),
        ({"drafter.preparedTokens": [0, 7]}, "spec.drafter.preparedTokens[1]", "above the maximum of 3"),
        ({"drafter.parameters": {"num-speculative-tokens": 9}}, "spec.drafter.parameters.num-speculative-tokens",
         "spec.drafter.numSpeculativeTokens"),
    ],
)  # fmt: skip
def test_a_bad_envelope_leaves_the_schedule_alone(changes: dict[str, Any], path: str, words: str) -> None:
    (problem,) = envelope_problems(resource(changes))
    assert problem.field == path
    assert words in problem.message
    assert schedule_problems(resource(changes)) == []
    made = manifests(resource(changes))
    assert made["ConfigMap"] == manifests(resource())["ConfigMap"]
    assert "Deployment" not in made


def test_a_method_that_cannot_run_is_named() -> None:
    drafter = {"method": "dspark", "numSpeculativeTokens": 3}
    found = problems(resource({"drafter": drafter, "engine.modelRunner": "V1"}))
    assert any(p.field == "spec.drafter.method" and "V2" in p.message for p in found)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"engine.maxNumSeqs": 1},
        {"schedule": ranges(3, 0, 2, 1, 3)},
        {"schedule": [{"startBatchSize": 1, "endBatchSize": 2**31 - 1, "numSpeculativeTokens": 0}]},
        {"engine.extraArgs": ["--seed=0", "--enforce-eager", "--max-model-len=auto"]},
        {"drafter": {"method": "suffix", "numSpeculativeTokens": 3}, "schedule": ranges(3)},
    ],
)
def test_what_is_sound_is_accepted(changes: dict[str, Any]) -> None:
    assert problems(resource(changes)) == []
