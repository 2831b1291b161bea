"""What is rendered, judged by a real API server: its schemas, server-side apply, and restricted Pod Security."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from dsd_operator.api import DSDDeployment, parse
from dsd_operator.render import leader_worker_set
from dsd_operator.render.context import RenderContext
from dsd_operator.render.plan import plan
from dsd_operator.render.preflight import problems
from dsd_operator.render.restricted import restricted_violations
from dsd_operator.render.workload import kind_of
from dsd_runtime.protocol import Revision
from tests.unit.resources import body
from tools.cluster.api import ApiOnlyCluster
from tools.testbed.kube import Json, Kube
from tools.testbed.module_crds import LEADER_WORKER_SET
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

NAMESPACE: Final = "t-rendering"
SAMPLES: Final = sorted((Path(__file__).parents[2] / "samples").glob("*.yaml"))
CONTEXT: Final = RenderContext("registry.local/dsd-runtime:1", Revision(owner="o", number=1))
NAMES: Final = ["tiny-llama-v0.1", "70b-chat", "123", "vllm", "default", "kubernetes", "a" * 63, "a" * 64, "a.b" * 66]

SHAPE: Final[dict[str, Any]] = {
    "nodeSelector": {"accelerator": "h100", "size": "8"},
    "priorityClassName": "serving",
    "runtimeClassName": "nvidia",
    "schedulerName": "volcano",
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}},
}  # fmt: skip

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
        **SHAPE,
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"},
        ],
        "initContainers": [
            {"name": "mesh", "image": "mesh", "restartPolicy": "Always"},
            {"name": "warm", "image": "warm", "command": ["true"]},
        ],
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
def test_samples_and_their_children_are_accepted(
    kube: Kube, cluster: ApiOnlyCluster, namespace: str, sample: Path
) -> None:
    resource = stored(kube, namespace, yaml.safe_load(sample.read_text()))
    workload = kind_of(resource)
    if workload == leader_worker_set.KIND:
        LEADER_WORKER_SET.install(cluster.kubeconfig)
    assert apply_children(kube, resource).keys() >= {"ServiceAccount", "ConfigMap", "Service", workload}


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
    for name, value in SHAPE.items():
        assert template["spec"][name] == value, name
    (spread,) = template["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"]["dsd-operator.io/deployment"] == "rich"
    (sidecar,) = [c for c in template["spec"]["initContainers"] if c["name"] == "mesh"]
    assert sidecar["restartPolicy"] == "Always"
    assert restricted_violations(template["spec"]) == []
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
        if kind not in ("Deployment", "PodDisruptionBudget"):  # their controllers write status meanwhile
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


RESTRICTED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

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
    "sysctl": ("pod", {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"},
               "sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
    "apparmor": ("container", {"securityContext": {**RESTRICTED, "appArmorProfile": {"type": "Unconfined"}}}),
    "selinux-type": ("container", {"securityContext": {**RESTRICTED, "seLinuxOptions": {"type": "spc_t"}}}),
    "selinux-user": ("container", {"securityContext": {**RESTRICTED, "seLinuxOptions": {"user": "root"}}}),
    "probe-host": ("container", {"livenessProbe": {"httpGet": {"port": 8000, "host": "10.0.0.1"}}}),
    "hook-host": ("container", {"lifecycle": {"postStart": {"httpGet": {"port": 8000, "host": "10.0.0.1"}}}}),
    "net-bind-service": ("allowed", {"securityContext": {**RESTRICTED, "capabilities": {
               "drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}),
    "selinux-container": ("allowed", {"securityContext": {**RESTRICTED, "seLinuxOptions": {"type": "container_t"}}}),
    "loopback-probe": ("container", {"livenessProbe": {"httpGet": {"port": 8000, "host": "127.0.0.1"}}}),
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
    if where == "allowed":
        assert restricted_violations(pod["spec"]) == []
        kube.apply(pod)
        return
    assert restricted_violations(pod["spec"]) != []
    with pytest.raises(ApiException) as refused:
        kube.apply(pod)
    assert refused.value.status == 403
    assert "violates PodSecurity" in refused.value.body


GPUS: Final = (
    "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe",
    "habana.ai/gaudi", "google.com/tpu",
)  # fmt: skip


@pytest.mark.parametrize("name", GPUS)
def test_gpus_of_every_vendor_reach_the_engine(kube: Kube, namespace: str, name: str) -> None:
    changes = {"resources": {"limits": {name: 2, "memory": "64Gi"}}, "engine.tensorParallelSize": 2}
    made = apply_children(kube, stored(kube, namespace, body(changes, "gpus")))["Deployment"]
    engine = made["spec"]["template"]["spec"]["containers"][0]
    assert engine["resources"]["limits"][name] == "2"


def test_devices_by_resource_claims_reach_the_engine(kube: Kube, namespace: str) -> None:
    """resource.k8s.io/v1 is on by default in Kubernetes 1.34: each pod of the Deployment gets a claim of its own."""
    devices = [{"name": "gpus", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}]
    meta = {"name": "two-gpus", "namespace": namespace}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta}
    kube.apply({**claim, "spec": {"spec": {"devices": {"requests": devices}}}})
    template = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-gpus"}]}
    changes = {
        "podTemplate.spec": template,
        "resources": {"claims": [{"name": "gpus", "request": "gpus"}]},
        "engine.tensorParallelSize": 2,
    }
    made = apply_children(kube, stored(kube, namespace, body(changes, "claims")))["Deployment"]
    pod = made["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == template["resourceClaims"]
    assert pod["containers"][0]["resources"]["claims"] == [{"name": "gpus", "request": "gpus"}]

    claims = wait_for(
        "the pod's claim", lambda: kube.list("ResourceClaim", namespace), lambda found: len(found) == 1, 60
    )
    assert claims[0]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
