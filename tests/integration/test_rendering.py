"""What is rendered, judged by a real API server: its schemas, server-side apply, and restricted Pod Security."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from dsd_operator.api import DSDDeployment, parse
from dsd_operator.render.context import RenderContext
from dsd_operator.render.plan import plan
from dsd_operator.render.preflight import problems
from dsd_operator.render.restricted import restricted_violations
from dsd_runtime.protocol import Revision
from tests.unit.resources import body
from tools.testbed.kube import Json, Kube

pytestmark = pytest.mark.integration

NAMESPACE: Final = "t-rendering"
SAMPLES: Final = sorted((Path(__file__).parents[2] / "samples").glob("*.yaml"))
CONTEXT: Final = RenderContext("registry.local/dsd-runtime:1", Revision(owner="o", number=1))
NAMES: Final = ["tiny-llama-v0.1", "70b-chat", "123", "vllm", "default", "kubernetes", "a" * 63, "a" * 64, "a.b" * 66]

RICH_TEMPLATE: Final[dict[str, Any]] = {
    "metadata": {
        "creationTimestamp": None,
        "annotations": {"sidecar.istio.io/inject": "false"},
        "labels": {"team": "a"},
    },
    "spec": {
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            {"key": "pool", "value": "a"},
            {"key": "pool", "value": "b"},
        ],
        "imagePullSecrets": [{"name": "regcred"}],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "dsd-home", "persistentVolumeClaim": {"claimName": "cache"}},
        ],
        "containers": [
            {"name": "proxy", "image": "proxy", "ports": [{"containerPort": 9000}]},
            {
                "name": "engine",
                "env": [{"name": "HF_HOME", "value": "/data"}, {"name": "MY_IP", "valueFrom": {"fieldRef": {
                    "fieldPath": "status.podIP"}}}],
                "ports": [{"name": "api", "containerPort": 8000}, {"name": "debug", "containerPort": 5678}],
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
                "livenessProbe": {"tcpSocket": {"port": 8000}},
                "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
            },
        ],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def namespace(kube: Kube) -> Iterator[str]:
    """A namespace that enforces the restricted level."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    yield NAMESPACE
    kube.remove_namespace(NAMESPACE, timeout=60)


def stored(kube: Kube, namespace: str, manifest: Json) -> DSDDeployment:
    """The resource as the API server stores it, defaults filled in and unknown fields pruned."""
    meta = {"name": manifest["metadata"]["name"], "namespace": namespace}
    return parse(kube.apply({**manifest, "metadata": meta}))


def apply_children(kube: Kube, resource: DSDDeployment) -> dict[str, Json]:
    assert problems(resource) == []
    return {manifest["kind"]: kube.apply(manifest) for manifest in plan(resource, CONTEXT)}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_and_their_children_are_accepted(kube: Kube, namespace: str, sample: Path) -> None:
    resource = stored(kube, namespace, yaml.safe_load(sample.read_text()))
    assert apply_children(kube, resource).keys() == {"ServiceAccount", "ConfigMap", "Service", "Deployment"}


@pytest.mark.parametrize("name", NAMES)
def test_children_of_every_legal_name_are_accepted(kube: Kube, namespace: str, name: str) -> None:
    apply_children(kube, stored(kube, namespace, body(name=name)))


def test_a_rich_template_survives_the_round_trip(kube: Kube, namespace: str) -> None:
    resource = stored(kube, namespace, body({"podTemplate": RICH_TEMPLATE}, name="rich"))
    template = apply_children(kube, resource)["Deployment"]["spec"]["template"]
    engine = template["spec"]["containers"][0]
    assert template["metadata"]["labels"]["team"] == "a"
    assert template["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert template["spec"]["tolerations"] == RICH_TEMPLATE["spec"]["tolerations"]
    assert [port["containerPort"] for port in engine["ports"]] == [8000, 5678]
    assert [variable["name"] for variable in engine["env"]][-2:] == ["HF_HOME", "MY_IP"]
    assert {volume["name"] for volume in template["spec"]["volumes"]} == {
        "shm", "dsd-home", "dsd-config", "dsd-run", "dsd-tmp",
    }  # fmt: skip


def test_what_was_merged_goes_when_it_is_taken_back(kube: Kube, namespace: str) -> None:
    plain = apply_children(kube, stored(kube, namespace, body(name="back")))["Deployment"]["spec"]["template"]
    apply_children(kube, stored(kube, namespace, body({"podTemplate": RICH_TEMPLATE}, name="back")))
    again = apply_children(kube, stored(kube, namespace, body(name="back")))["Deployment"]
    assert again["spec"]["template"] == plain


def test_applying_again_changes_nothing(kube: Kube, namespace: str) -> None:
    resource = stored(kube, namespace, body({"resources": {"limits": {"cpu": "1.5m", "memory": "1024Mi"}}}, "again"))
    first, second = apply_children(kube, resource), apply_children(kube, resource)
    for kind, child in first.items():
        if kind != "Deployment":  # its controller writes status meanwhile
            assert child["metadata"]["resourceVersion"] == second[kind]["metadata"]["resourceVersion"]
    assert first["Deployment"]["metadata"]["generation"] == second["Deployment"]["metadata"]["generation"]


def pod_from(resource: DSDDeployment, name: str) -> Json:
    (template,) = [m["spec"]["template"] for m in plan(resource, CONTEXT) if m["kind"] == "Deployment"]
    metadata = {**template["metadata"], "name": name, "namespace": resource.metadata.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": deepcopy(template["spec"])}


def test_our_pod_is_admitted_at_the_restricted_level(kube: Kube, namespace: str) -> None:
    resource = stored(kube, namespace, body(name="restricted"))
    apply_children(kube, resource)
    kube.apply(pod_from(resource, "restricted-pod"))


BROKEN: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "host-network": ("pod", {"hostNetwork": True}),
    "host-path": ("pod", {"volumes": [{"name": "dsd-home", "hostPath": {"path": "/"}}]}),
    "root": ("pod", {"securityContext": {"runAsNonRoot": False, "seccompProfile": {"type": "RuntimeDefault"}}}),
    "seccomp": ("pod", {"securityContext": {"runAsNonRoot": True}}),
    "privileged": ("container", {"securityContext": {"privileged": True}}),
    "escalation": ("container", {"securityContext": {"capabilities": {"drop": ["ALL"]}}}),
    "capabilities": ("container", {"securityContext": {"allowPrivilegeEscalation": False}}),
    "user-0": ("container", {"securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False,
               "capabilities": {"drop": ["ALL"]}}}),
    "host-port": ("container", {"ports": [{"containerPort": 8000, "hostPort": 8000}]}),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_our_checker_and_pod_security_agree(kube: Kube, namespace: str, name: str) -> None:
    resource = stored(kube, namespace, body(name="agree"))
    apply_children(kube, resource)
    pod = pod_from(resource, f"broken-{name}")
    where, change = BROKEN[name]
    volumes = [v for v in pod["spec"]["volumes"] if v["name"] not in {c["name"] for c in change.get("volumes", [])}]
    (pod["spec"] if where == "pod" else pod["spec"]["containers"][0]).update(change)
    if "volumes" in change:
        pod["spec"]["volumes"] = [*volumes, *change["volumes"]]
    assert restricted_violations(pod["spec"]) != []
    with pytest.raises(ApiException) as refused:
        kube.apply(pod)
    assert refused.value.status == 403
    assert "violates PodSecurity" in refused.value.body
