"""What an undo changes of a spec, what differs between two envelopes, and where a roll-out is."""

from copy import deepcopy
from typing import Any, Final

import pytest

from dsd_operator.api import parse
from dsd_operator.api.envelope import envelope, envelope_hash
from kubectl_dsd.errors import Failure
from kubectl_dsd.rollout.differences import changes, patch
from kubectl_dsd.rollout.revisions import Revision, pick, revisions_of
from kubectl_dsd.rollout.status import stage_of
from tests.unit.resources import body

STORED: Final = {"engine": {"modelRunner": "Auto"}, "startup": {"timeoutSeconds": 3600}, "drafter.parameters": {}}
"""What the API server fills in."""

PAIRS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "nothing": ({}, {}),
    "a value": ({"engine.maxNumSeqs": 8}, {"engine.maxNumSeqs": 16}),
    "something more": ({"engine.maxNumSeqs": 8, "resources": {"limits": {"cpu": 1}}}, {}),
    "something less": ({}, {"resources": {"limits": {"cpu": 1}, "requests": {"cpu": "500m"}}}),
    "inside a map": ({"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}, {"resources": {"limits": {"cpu": 2}}}),
    "a list": ({"engine.env": [{"name": "A", "value": "1"}]}, {"engine.env": [{"name": "B", "value": "2"}]}),
    "a restart": ({"rollout": {"restartedAt": "2026-01-01T00:00:00Z", "maxSurge": 1}}, {"rollout": {"maxSurge": 1}}),
    "the time to drain": ({}, {"rollout": {"drainTimeoutSeconds": 99}}),
    "a pod template": (
        {"podTemplate": {"spec": {"volumes": [{"name": "x", "emptyDir": {}}]}, "metadata": {"labels": {"a": "b"}}}},
        {"podTemplate": {"spec": {"nodeSelector": {"pool": "a"}}}},
    ),
}


def merged(spec: Any, change: Any) -> Any:
    """What the API server makes of a JSON merge patch."""
    if not isinstance(change, dict):
        return change
    made = dict(spec) if isinstance(spec, dict) else {}
    for name, value in change.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_the_patch_makes_one_envelope_of_the_other(name: str, back: bool) -> None:
    one, other = (body({**STORED, **changed}) for changed in PAIRS[name])
    now, then = (other, one) if back else (one, other)
    wanted = envelope(parse(then).spec)
    spec = now["spec"] | {"replicas": 7}
    undone = merged(deepcopy(spec), patch(spec, wanted))
    assert envelope_hash(envelope(parse({**now, "spec": undone}).spec)) == envelope_hash(wanted)
    assert (undone["schedule"], undone["replicas"]) == (spec["schedule"], 7)
    assert undone.get("rollout", {}).get("maxSurge") == spec.get("rollout", {}).get("maxSurge")


def test_a_claim_keeps_its_size() -> None:
    now = body({"cache": {"size": "20Gi", "storageClass": "fast"}})["spec"]
    asked = envelope(parse(body({"cache": {"size": "10Gi", "storageClass": "fast", "offline": True}})).spec)
    assert patch(now, asked) == {"cache": {"offline": True}}


def test_differences_are_told_by_field() -> None:
    one = {"engine": {"maxNumSeqs": 8, "dtype": "float32"}, "sharedMemory": {"sizeLimit": "1Gi"}}
    other = {"engine": {"maxNumSeqs": 16, "dtype": "float32"}, "rollout": {"drainTimeoutSeconds": 60}}
    assert list(changes(one, other)) == [
        "engine.maxNumSeqs: 8 -> 16",
        "rollout: unset -> {'drainTimeoutSeconds': 60}",
        "sharedMemory: {'sizeLimit': '1Gi'} -> unset",
    ]


def variables(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


ADDED: Final = {"name": "b", "env": variables(C="x")}
TOKEN: Final = "hf_aVeryLongTokenOfSomebody"


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (
            {"engine": {"env": variables(A="one", B="two", HF_TOKEN=TOKEN)}},
            {"engine": {"env": variables(A="one", B="three", C="four")}},
            ["engine.env[B]: changed", "engine.env[C]: added", "engine.env[HF_TOKEN]: removed"],
        ),
        ({"engine": {}}, {"engine": {"env": variables(A="one")}}, ["engine.env[A]: added"]),
        (
            {"engine": {"env": variables(A="one", B="two")}},
            {"engine": {"env": variables(B="two", A="one")}},
            ["engine.env: in another order"],
        ),
        ({}, {"engine": {"env": variables(A="one"), "image": "x"}}, ["engine: unset -> {'env': ['A'], 'image': 'x'}"]),
        (
            {"engine": {"extraArgs": ["--api-key", "not-for-you", "--seed=1"]}},
            {"engine": {"extraArgs": ["--seed=2", "--api-key=not-for-you"]}},
            ["engine.extraArgs: ['--api-key', '<secret>', '--seed=1'] -> ['--seed=2', '--api-key=<secret>']"],
        ),
        (
            {"engine": {"extraArgs": ["--seed=1", "--served-by=not-for-you"]}},
            {"engine": {"env": variables(VLLM_API_KEY="not-for-you")}},
            ["engine.env[VLLM_API_KEY]: added", "engine.extraArgs: ['--seed=1', '--served-by=<secret>'] -> unset"],
        ),
        (
            {"podTemplate": {"spec": {"containers": [{"name": "engine", "env": variables(A="one", B=TOKEN)}]}}},
            {"podTemplate": {"spec": {"containers": [ADDED, {"name": "engine", "tty": True}]}}},
            [
                "podTemplate.spec.containers[b]: unset -> {'name': 'b', 'env': ['C']}",
                "podTemplate.spec.containers[engine].env[A]: removed",
                "podTemplate.spec.containers[engine].env[B]: removed",
                "podTemplate.spec.containers[engine].tty: unset -> True",
            ],
        ),
        (
            {"podTemplate": {"mounts": [{"name": "a", "at": 1}, {"name": "a", "at": 2}]}},
            {"podTemplate": {"mounts": [{"name": "a", "at": 1}]}},
            ["podTemplate.mounts: [{'name': 'a', 'at': 1}, {'name': 'a', 'at': 2}] -> [{'name': 'a', 'at': 1}]"],
        ),
        (
            {"podTemplate": {"metadata": {"labels": {"env": "prod"}}}},
            {"podTemplate": {"metadata": {"labels": {"env": "test"}}}},
            ["podTemplate.metadata.labels.env: prod -> test"],
        ),
        (
            {"podTemplate": {"spec": {"volumes": [{"name": "hf-token", "secret": {"secretName": "mine"}}]}}},
            {"podTemplate": {"spec": {"volumes": [{"name": "hf-token", "secret": {"secretName": "yours"}}]}}},
            ["podTemplate.spec.volumes[hf-token].secret.secretName: mine -> yours"],
        ),
    ],
)  # fmt: skip
def test_variables_are_told_by_name_and_no_secret_is_told(one: Any, other: Any, told: list[str]) -> None:
    assert list(changes(one, other)) == told
    back = " ".join(changes(other, one))
    assert TOKEN not in back
    assert "not-for-you" not in back


class Stored:
    """A cluster with one revision of this resource and others that carry its labels."""

    def list(self, *_: Any) -> list[dict[str, Any]]:
        readable = {"envelope": {"model": {"name": "a"}}, "pods": {}}
        return [
            {"metadata": {"ownerReferences": [{"uid": "ours"}]}, "data": readable, "revision": 0},
            {"metadata": {"ownerReferences": [{"uid": "another's"}]}, "data": readable, "revision": 1},
            {"metadata": {"ownerReferences": [{"uid": "ours"}]}, "data": {"spec": {}}, "revision": 2},
        ]


def test_revisions_of_others_are_not_shown() -> None:
    cluster: Any = Stored()
    meta = {"namespace": "team-a", "name": "demo", "uid": "ours"}
    assert [revision.number for revision in revisions_of(cluster, {"metadata": meta})] == [0]


def revision(number: int, found: str) -> Revision:
    return Revision(number, found, {}, "", "")


def test_without_a_number_it_is_the_one_before() -> None:
    found = [revision(2, "a"), revision(5, "b"), revision(6, "c")]
    assert pick(found, "c", None).number == 5
    assert pick(found, "not stored yet", None).number == 6
    assert pick(found, "c", 2).number == 2


@pytest.mark.parametrize(
    ("number", "words"), [(None, "no other revision to go back to"), (9, "there is no revision 9")]
)
def test_what_there_is_not_is_said(number: int | None, words: str) -> None:
    with pytest.raises(Failure, match=words):
        pick([revision(1, "a")], "a", number)


def deployment(generation: int, status: str, reason: str) -> dict[str, Any]:
    condition = {"type": "Progressing", "status": status, "reason": reason, "message": "m"}
    condition["observedGeneration"] = 4  # type: ignore[assignment]
    return {"metadata": {"generation": generation}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("status", "reason", "done", "stuck"),
    [
        ("False", "RolledOut", True, False),
        ("True", "RollingOut", False, False),
        ("False", "ProgressDeadlineExceeded", False, True),
        ("False", "InvalidSpec", False, True),
    ],
)
def test_where_a_roll_out_is(status: str, reason: str, done: bool, stuck: bool) -> None:
    stage = stage_of(deployment(4, status, reason))
    assert (stage.done, stage.stuck) == (done, stuck)
    assert stage.words.endswith(": m")


def test_what_is_about_an_older_spec_does_not_count() -> None:
    assert stage_of(deployment(5, "False", "RolledOut")).words == "the operator has not looked at it yet"
    assert "does it run?" in stage_of(deployment(5, "False", "RolledOut"), seconds=60).words
