"""Every pod we render is admitted by the restricted level of Pod Security; the checker itself knows what is not."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_operator.render.preflight import problems
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


CONTEXT: Any = st.fixed_dictionaries(
    {},
    optional={
        "runAsUser": st.sampled_from([1, 1000870000]),
        "readOnlyRootFilesystem": st.booleans(),
        "capabilities": st.fixed_dictionaries({}, optional={"add": st.just(["NET_BIND_SERVICE"])}),
        "seccompProfile": st.just({"type": "Localhost", "localhostProfile": "p.json"}),
    },
)
"""What a container may ask for within the restricted level."""

CONTAINERS: Any = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["engine", "proxy", "agent"])}, optional={"securityContext": CONTEXT}
    ),
    max_size=3,
    unique_by=lambda container: str(container["name"]),
)
SIDECARS: Any = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["init", "mesh"]), "image": st.just("i")},
                          optional={"restartPolicy": st.just("Always"), "securityContext": CONTEXT}),
    max_size=2,
    unique_by=lambda container: str(container["name"]),
)  # fmt: skip
VOLUMES: Any = st.lists(
    st.sampled_from(
        [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "c"}},
         {"name": "c", "secret": {"secretName": "s"}}, {"name": "dsd-home", "emptyDir": {}}]
    ),
    unique_by=lambda volume: str(volume["name"]),
)  # fmt: skip


@given(CONTAINERS, SIDECARS, VOLUMES, st.sampled_from([{}, {"fsGroup": 5}, {"runAsUser": 7}]), st.booleans())
def test_a_template_that_overrides_no_security_leaves_the_pod_restricted(
    containers: Any, sidecars: Any, volumes: Any, context: Any, cache: bool
) -> None:
    for container in containers:
        if container["name"] != "engine":
            container["image"] = "i"
    template = {
        "containers": containers, "initContainers": sidecars, "volumes": volumes, "securityContext": context,
        "nodeSelector": {"pool": "a"}, "tolerations": [{"operator": "Exists"}], "priorityClassName": "high",
    }  # fmt: skip
    made = resource({"podTemplate.spec": template, "cache": {"size": "1Gi"} if cache else {}})
    assert problems(made) == []
    assert restricted_violations(pod_spec(made)) == []


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_what_users_add_gets_what_the_level_asks_for_and_no_more(field: str) -> None:
    added = {"name": "proxy", "image": "p", "securityContext": {"runAsUser": 101}}
    (made,) = [c for c in pod_spec(resource({"podTemplate.spec": {field: [added]}}))[field] if c["name"] == "proxy"]
    assert made["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 101,
    }  # fmt: skip


@pytest.mark.parametrize("context", [{"privileged": True}, {"capabilities": {"add": ["SYS_ADMIN"]}}], ids=str)
@pytest.mark.parametrize("name", ["engine", "proxy"])
def test_who_asks_for_more_gets_it_and_the_checker_sees_it(name: str, context: dict[str, Any]) -> None:
    container = {"name": name, "securityContext": context} | ({} if name == "engine" else {"image": "p"})
    made = pod_spec(resource({"podTemplate.spec": {"containers": [container]}}))
    (found,) = [c for c in made["containers"] if c["name"] == name]
    security = found["securityContext"]
    assert security.get("privileged") == context.get("privileged")
    assert security["capabilities"].get("add") == context.get("capabilities", {}).get("add")
    assert "allowPrivilegeEscalation" not in security, "Kubernetes refuses False beside these"
    assert restricted_violations(made)


def test_no_id_is_set_so_that_a_platform_may_choose() -> None:
    contexts = [pod_spec(resource())["securityContext"], engine(resource())["securityContext"]]
    for context in contexts:
        assert not context.keys() & {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"}
    assert engine(resource())["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("where", "change", "words"),
    [
        ("pod", {"hostNetwork": True}, "hostNetwork"),
        ("pod", {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "sysctls": [
            {"name": "kernel.msgmax", "value": "1"}]}}, "sysctls"),
        ("pod", {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"},
            "appArmorProfile": {"type": "Unconfined"}}}, "AppArmor"),
        ("pod", {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, "hostPath"),
        ("pod", {"securityContext": {"runAsNonRoot": False, "seccompProfile": {"type": "RuntimeDefault"}}}, "root"),
        ("pod", {"securityContext": {"runAsNonRoot": True}}, "seccomp"),
        ("container", {"securityContext": {"privileged": True}}, "privileged"),
        ("container", {"securityContext": {"allowPrivilegeEscalation": True}}, "escalate"),
        ("container", {"securityContext": {"allowPrivilegeEscalation": False}}, "capabilities"),
        ("container", {"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}}, "adds"),
        ("container", {"securityContext": {"runAsUser": 0}}, "root"),
        ("container", {"ports": [{"containerPort": 1, "hostPort": 1}]}, "host ports"),
        ("container", {"securityContext": {"seLinuxOptions": {"user": "root"}}}, "SELinux"),
        ("container", {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}, "SELinux"),
        ("container", {"securityContext": {"procMount": "Unmasked"}}, "/proc"),
        ("container", {"livenessProbe": {"httpGet": {"port": 1, "host": "10.0.0.1"}}}, "another host"),
        ("container", {"lifecycle": {"preStop": {"tcpSocket": {"port": 1, "host": "10.0.0.1"}}}}, "another host"),
    ],
)  # fmt: skip
def test_the_checker_finds_what_is_not_restricted(where: str, change: dict[str, Any], words: str) -> None:
    spec = deepcopy(pod_spec(resource()))
    (spec if where == "pod" else spec["containers"][0]).update(change)
    assert any(words in violation for violation in restricted_violations(spec))
