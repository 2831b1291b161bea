"""Remarks on the pods' shape reach the condition Ready."""

from typing import Any

import pytest

from dsd_operator.status.notes import envelope_notes
from tests.unit.resources import resource

OPEN_NOTE = (
    "podTemplate takes the pods out of the restricted level of Pod Security (hostNetwork is set, container engine is "
    "privileged, container engine may escalate privileges): a namespace that enforces it refuses them"
)
SHORT_NOTE = (
    "podTemplate.spec.terminationGracePeriodSeconds: 64 s end a pod before its running requests may; leave it out for "
    "the 65 s that rollout.drainTimeoutSeconds 30 takes"
)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"resources": {"limits": {"amd.com/gpu": 4}}},
            "4 GPUs are asked for (amd.com/gpu: 4) and 1 used: tensorParallelSize is 1",
        ),
        (
            {"sharedMemory.sizeLimit": "16Gi", "resources": {"limits": {"memory": "8Gi"}}},
            "sharedMemory.sizeLimit 16Gi counts against the memory limit, which is 8Gi: no more fits",
        ),
        (
            {"podTemplate.spec": {"hostNetwork": True, "containers": [
                {"name": "engine", "securityContext": {"privileged": True}}]}},
            OPEN_NOTE,
        ),
        (
            {"podTemplate.spec": {"terminationGracePeriodSeconds": 64}},
            SHORT_NOTE,
        ),
    ],
)  # fmt: skip
def test_what_has_a_catch_is_told(changes: dict[str, Any], note: str) -> None:
    assert envelope_notes(resource(changes)) == [note]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sharedMemory.sizeLimit": "8192Mi", "resources": {"limits": {"memory": "8Gi"}}},
        {"podTemplate.spec": {"terminationGracePeriodSeconds": 65}},
        {"podTemplate.spec": {"volumes": [{"name": "weights", "image": {"reference": "registry.example.com/w:1"}}]}},
        {"podTemplate.spec": {"nodeSelector": {"pool": "a"}, "containers": [{"name": "proxy", "image": "p"}]}},
    ],
)
def test_nothing_is_told_where_there_is_no_catch(changes: dict[str, Any]) -> None:
    assert envelope_notes(resource(changes)) == []
