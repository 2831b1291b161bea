"""Every pod we render is admitted by the restricted level of Pod Security; the checker itself knows what is not."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_operator.render.restricted import restricted_violations
from tests.unit.render.test_hot_and_scaled import schedules
from tests.unit.resources import engine, pod_spec, resource


@given(
    schedules(),
    st.sampled_from(["Auto", "V1", "V2"]),
    st.none() | st.just({"name": "hub", "key": "token"}),
    st.none() | st.just("8Gi"),
)
def test_every_rendered_pod_is_restricted(
    schedule: list[dict[str, int]], runner: str, token: dict[str, str] | None, shared_memory: str | None
) -> None:
    changes = {
        "schedule": schedule,
        "engine.modelRunner": runner,
        "model.tokenSecretRef": token,
        "sharedMemory.sizeLimit": shared_memory,
    }
    assert restricted_violations(pod_spec(resource(changes))) == []


def test_no_id_is_set_so_that_a_platform_may_choose() -> None:
    contexts = [pod_spec(resource())["securityContext"], engine(resource())["securityContext"]]
    for context in contexts:
        assert not context.keys() & {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"}
    assert engine(resource())["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("where", "change", "words"),
    [
        ("pod", {"hostNetwork": True}, "hostNetwork"),
        ("pod", {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, "hostPath"),
        ("pod", {"securityContext": {"runAsNonRoot": False, "seccompProfile": {"type": "RuntimeDefault"}}}, "root"),
        ("pod", {"securityContext": {"runAsNonRoot": True}}, "seccomp"),
        ("container", {"securityContext": {"privileged": True}}, "privileged"),
        ("container", {"securityContext": {"allowPrivilegeEscalation": True}}, "escalate"),
        ("container", {"securityContext": {"allowPrivilegeEscalation": False}}, "capabilities"),
        ("container", {"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}}, "adds"),
        ("container", {"securityContext": {"runAsUser": 0}}, "root"),
        ("container", {"ports": [{"containerPort": 1, "hostPort": 1}]}, "host ports"),
    ],
)
def test_the_checker_finds_what_is_not_restricted(where: str, change: dict[str, Any], words: str) -> None:
    spec = deepcopy(pod_spec(resource()))
    (spec if where == "pod" else spec["containers"][0]).update(change)
    assert any(words in violation for violation in restricted_violations(spec))
