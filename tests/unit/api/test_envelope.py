"""The envelope: the same for all spellings of it and for every version of the operator, another for another pod."""

from typing import Any, Final

import pytest

from dsd_operator.api import parse
from dsd_operator.api.envelope import HASH_LENGTH, envelope, envelope_hash
from tests.unit.resources import body, resource


def hash_of(changes: dict[str, Any] | None = None) -> str:
    return envelope_hash(envelope(resource(changes).spec))


MODEL: Final = {"model": {"name": "acme/tiny-llama"}}
SAME: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "a default that is written out": ({}, {"engine.modelRunner": "Auto", "startup": {"timeoutSeconds": 3600}}),
    "the default of what drains": ({}, {"rollout": {"drainTimeoutSeconds": 30, "maxSurge": 0}}),
    "how pods are replaced": ({}, {"rollout": {"maxSurge": 2, "maxUnavailable": 0, "minReadySeconds": 60}}),
    "what is emptied": ({}, {"sharedMemory": {}, "resources": {"limits": {}}, "podTemplate": {"metadata": {}}}),
    "an emptied map in metadata": ({}, {"podTemplate": {"metadata": {"labels": {}, "annotations": {}}}}),
    "a null in a free form": ({}, {"podTemplate": {"metadata": {"creationTimestamp": None}}}),
    "another spelling of memory": (
        {"resources": {"limits": {"memory": "1Gi"}}},
        {"resources": {"limits": {"memory": "1024Mi"}}},
    ),
    "a number or a string": ({"resources": {"limits": {"cpu": 4}}}, {"resources": {"limits": {"cpu": "4000m"}}}),
    "amounts in the pod template": (
        {"podTemplate": {"spec": {"containers": [{"name": "x", "resources": {"requests": {"cpu": 1}}}]}}},
        {"podTemplate": {"spec": {"containers": [{"name": "x", "resources": {"requests": {"cpu": "1"}}}]}}},
    ),
    "the order of a set": ({"drafter.preparedTokens": [0, 1, 3]}, {"drafter.preparedTokens": [3, 0, 1]}),
    "a schedule": (
        {},
        {"schedule": [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 0}], "replicas": 9},
    ),
    "a claim that grows": ({"cache": {"size": "1Gi"}}, {"cache": {"size": "2Gi", "storageClass": "fast"}}),
}
OTHER: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "a field": ({}, {"engine.maxNumSeqs": 8}),
    "an amount": ({"resources": {"limits": {"cpu": 1}}}, {"resources": {"limits": {"cpu": 2}}}),
    "a limit is no request": ({"resources": {"limits": {"cpu": 1}}}, {"resources": {"requests": {"cpu": 1}}}),
    "time to drain": ({}, {"rollout": {"drainTimeoutSeconds": 31}}),
    "a restart": ({}, {"rollout": {"restartedAt": "2026-01-01T00:00:00Z"}}),
    "a later restart": (
        {"rollout": {"restartedAt": "2026-01-01T00:00:00Z"}},
        {"rollout": {"restartedAt": "2026-01-01T00:00:01Z"}},
    ),
    "an empty object that says something": (
        {"podTemplate": {"spec": {"volumes": [{"name": "x", "emptyDir": {}}]}}},
        {"podTemplate": {"spec": {"volumes": [{"name": "x"}]}}},
    ),
    "the order of names": ({"model.servedNames": ["a", "b"]}, {"model.servedNames": ["b", "a"]}),
    "a cache": ({}, {"cache": {"size": "1Gi"}}),
}


@pytest.mark.parametrize("name", SAME)
def test_what_asks_for_the_same_pods_is_one_envelope(name: str) -> None:
    one, other = SAME[name]
    assert hash_of(one) == hash_of(other)


@pytest.mark.parametrize("name", OTHER)
def test_what_asks_for_other_pods_is_another(name: str) -> None:
    one, other = OTHER[name]
    assert hash_of(one) != hash_of(other)


@pytest.mark.parametrize("changes", [{}, *(change for _, change in (*SAME.values(), *OTHER.values()))])
def test_an_envelope_that_is_put_back_is_itself(changes: dict[str, Any]) -> None:
    asked = envelope(resource(changes).spec)
    spec = {"schedule": body()["spec"]["schedule"], **asked}
    again = parse({**body(), "spec": spec}).spec
    assert envelope(again) == asked


def test_it_keeps_the_users_spelling() -> None:
    asked = envelope(resource({"resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}}}).spec)
    assert asked["resources"] == {"limits": {"memory": "1024Mi", "cpu": 0.5}}


def test_only_what_the_user_asked_for_is_in_it() -> None:
    assert envelope(resource().spec) == {
        **MODEL,
        "drafter": {"method": "ngram", "numSpeculativeTokens": 3, "promptLookup": {"min": 2, "max": 4}},
    }


FROZEN: Final = {
    "plain": ({}, "0512926932"),
    "as the API server fills in its defaults": (
        {
            "engine": {"modelRunner": "Auto"},
            "startup": {"timeoutSeconds": 3600},
            "rollout": {"maxSurge": 0, "maxUnavailable": 1, "minReadySeconds": 5, "drainTimeoutSeconds": 30},
            "drafter.parameters": {},
        },
        "0512926932",
    ),
    "rich": (
        {
            "model": {"name": "acme/llama", "revision": "v1", "tokenSecretRef": {"name": "hf", "key": "token"}},
            "engine": {"image": "acme/engine:1", "gpuMemoryUtilization": 0.9, "env": [{"name": "A", "value": "1"}]},
            "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "64Gi"}},
            "sharedMemory": {"sizeLimit": "8Gi"},
            "rollout": {"drainTimeoutSeconds": 120, "restartedAt": "2026-01-01T00:00:00Z"},
            "podTemplate": {"spec": {"nodeSelector": {"pool": "a"}}},
        },
        "11ff2f4c72",
    ),
}


@pytest.mark.parametrize("name", FROZEN)
def test_the_hash_is_the_same_in_every_version(name: str) -> None:
    """Do not change the values: a hash that changes restarts every pod of everybody who upgrades. A default that
    changes does it too."""
    changes, wanted = FROZEN[name]
    assert hash_of(changes) == wanted
    assert len(wanted) == HASH_LENGTH
