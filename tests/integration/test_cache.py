"""spec.cache on a real API server with its volume controllers: claims made, grown, refused, named, kept and deleted."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from kubernetes.client.exceptions import ApiException

from tests.integration.world import CHILDREN, FIRST, NAME, SECOND, World
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

CLAIM: Final = "PersistentVolumeClaim"
SECONDS: Final = 60.0
"""What failed apart from the pods is tried again after 15 s."""


@pytest.fixture
def classes(world: World) -> Iterator[dict[str, str]]:
    """Two classes of this test's own; only claims of `fast` can grow. Volumes are made by hand."""
    names = {kind: f"{world.namespace}-{kind}"[-63:] for kind in ("fast", "rigid")}
    for kind, name in names.items():
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
        world.apply({**made, "provisioner": "example.com/none", "allowVolumeExpansion": kind == "fast"})
    yield names
    world.kubectl("delete", "storageclass", *names.values())
    world.kubectl("delete", "persistentvolume", "--selector", f"test={world.namespace}", "--wait=false")


def volume(world: World, storage_class: str, claim: str = NAME, mode: str = "ReadWriteOnce") -> None:
    """A volume for a claim that will be there."""
    spec = {
        "storageClassName": storage_class,
        "accessModes": [mode],
        "capacity": {"storage": "500Gi"},
        "claimRef": {"namespace": world.namespace, "name": claim},
        "hostPath": {"path": "/nowhere"},
    }
    meta = {"name": f"{world.namespace}-{claim}"[-63:], "labels": {"test": world.namespace}}
    world.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec})


def bound(world: World, name: str = NAME) -> Json:
    """The claim, bound to its volume."""
    found = wait_for(
        f"claim {name} to be bound",
        lambda: world.kube.get(CLAIM, world.namespace, name) or {},
        lambda claim: claim.get("status", {}).get("phase") == "Bound",
        SECONDS,
    )
    return dict(found)


def storage(claim: Json | None) -> str:
    assert claim is not None
    return str(claim["spec"]["resources"]["requests"]["storage"])


def wait_storage(world: World, size: str) -> Json:
    found = wait_for(
        f"a claim of {size}", lambda: world.child(CLAIM), lambda c: c is not None and storage(c) == size, SECONDS
    )
    assert found is not None
    return found


def template(world: World) -> Json:
    made: Json = world.wait_child("Deployment")["spec"]["template"]["spec"]
    return made


def mounted_claims(world: World) -> list[str]:
    volumes = template(world)["volumes"]
    return [v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v]


def ready(world: World, **wanted: str) -> Json:
    return wait_for(f"Ready with {wanted}", lambda: world.condition("Ready"), lambda c: wanted.items() <= c.items(),
                    SECONDS, 0.05)  # fmt: skip


def refused(world: World, **changes: Any) -> str:
    with pytest.raises(ApiException) as error:
        world.patch(**changes)
    assert error.value.status == 422
    return str(json.loads(error.value.body)["message"])


def test_a_claim_is_made_belongs_to_the_resource_and_stays_without_the_field(world: World) -> None:
    world.operator()
    uid = world.create(cache={"size": "1Gi"})["metadata"]["uid"]
    claim = world.wait_child(CLAIM)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (uid, True)
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert mounted_claims(world) == [NAME]

    world.patch(cache={"size": None})
    wait_for("pods without the claim", lambda: mounted_claims(world), lambda found: found == [], SECONDS)
    left = world.child(CLAIM)
    assert left is not None
    assert "deletionTimestamp" not in left["metadata"]
    world.patch(cache={"size": "1Gi"})
    wait_for("pods with the claim", lambda: mounted_claims(world), lambda found: found == [NAME], SECONDS)
    assert world.wait_child(CLAIM)["metadata"]["uid"] == claim["metadata"]["uid"]


def test_what_a_claim_cannot_become_is_refused_with_both_values_and_the_way_out(
    world: World, classes: dict[str, str]
) -> None:
    shared = {"size": "100Gi", "storageClass": classes["fast"], "accessMode": "ReadWriteMany"}
    world.create(cache=shared)
    message = refused(world, cache={"size": "50Gi"})
    assert "spec.cache.size" in message
    assert "a claim cannot shrink: its size is 100Gi, and was to become 50Gi" in message
    assert "name it in existingClaim" in message
    message = refused(world, cache={"storageClass": classes["rigid"]})
    assert f"it is {classes['fast']}, and was to become {classes['rigid']}" in message
    message = refused(world, cache={"accessMode": "ReadWriteOnce"})
    assert "accessMode of a claim cannot change: it is ReadWriteMany, and was to become ReadWriteOnce" in message
    world.patch(cache={"size": "102400Mi"})  # the same amount
    world.patch(cache={"size": "200Gi"})


def test_it_grows_and_one_grown_by_hand_is_left_alone(world: World, classes: dict[str, str]) -> None:
    volume(world, classes["fast"])
    operator = world.operator(RESYNC_SECONDS="0.3")
    world.create(cache={"size": "100Gi", "storageClass": classes["fast"]})
    bound(world)
    world.engines(1)
    ready(world, status="True")
    generation = world.wait_child("Deployment")["metadata"]["generation"]

    world.kube.patch(CLAIM, world.namespace, NAME, {"spec": {"resources": {"requests": {"storage": "200Gi"}}}})
    world.patch(cache={"size": "150Gi"})
    ready(world, status="True", observedGeneration=world.resource()["metadata"]["generation"])
    passes, writes = operator.metric("dsd_operator_reconcile_total", result="success"), operator.writes()
    wait_for(
        "five more passes",
        lambda: operator.metric("dsd_operator_reconcile_total", result="success"),
        lambda now: now >= passes + 5,
        SECONDS,
    )
    assert operator.writes() == writes
    assert storage(world.child(CLAIM)) == "200Gi"

    world.patch(cache={"size": "300Gi"})
    wait_storage(world, "300Gi")
    assert world.wait_child("Deployment")["metadata"]["generation"] == generation, "pods know nothing of the size"


def test_a_class_that_cannot_grow_is_one_condition_and_everything_else_goes_on(
    world: World, classes: dict[str, str]
) -> None:
    volume(world, classes["rigid"])
    world.operator()
    world.create(cache={"size": "1Gi", "storageClass": classes["rigid"]})
    bound(world)
    world.engines(1)
    ready(world, status="True")

    world.patch(cache={"size": "2Gi"})
    condition = ready(world, status="False", reason="ApplyFailed")
    assert f"{CLAIM} {NAME}" in condition["message"]
    assert "must support resize" in condition["message"]
    assert "cache.size was to grow from 1Gi to 2Gi; set it back, or" in condition["message"]
    world.wait_condition("Available", status="True")
    world.wait_condition("Progressing", status="False", reason="RolledOut")
    world.schedule(SECOND)
    world.wait_schedule(1)
    assert storage(world.child(CLAIM)) == "1Gi"


def test_a_claim_of_another_class_is_told_with_the_way_out(world: World, classes: dict[str, str]) -> None:
    """The field went and came back: no transition for the API server to judge."""
    world.operator()
    world.create(cache={"size": "1Gi", "storageClass": classes["fast"]})
    world.wait_child(CLAIM)
    world.patch(cache={"size": None, "storageClass": None})
    world.patch(cache={"size": "2Gi", "storageClass": classes["rigid"]})
    world.engines(1)
    condition = ready(world, status="False", reason="CacheNotAsAsked")
    assert f"cache.storageClass is '{classes['rigid']}', the claim has '{classes['fast']}'" in condition["message"]
    assert "cache.size is 2Gi, the claim has 1Gi" in condition["message"]
    assert "name it in existingClaim" in condition["message"]
    world.wait_condition("Available", status="True")
    world.schedule(SECOND)
    world.wait_schedule(1)

    world.patch(cache={"size": None, "storageClass": None})
    world.patch(cache={"size": "1Gi", "storageClass": classes["fast"]})
    wait_for(
        "another reason", lambda: world.condition("Ready").get("reason"), lambda r: r != "CacheNotAsAsked", SECONDS
    )


def test_a_claim_that_is_refused_holds_up_nothing_else(world: World) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    world.apply({**quota, "spec": {"hard": {"persistentvolumeclaims": "0"}}})
    world.operator()
    world.create(cache={"size": "1Gi"})
    for kind in CHILDREN:
        world.wait_child(kind)
    condition = ready(world, status="False", reason="ApplyFailed")
    assert "exceeded quota" in condition["message"]
    world.schedule(SECOND)
    world.wait_stored(SECOND)
    world.kubectl("delete", "resourcequota", "none")
    world.schedule(FIRST)  # a pass; else it takes 15 s
    wait_for("the claim", lambda: world.child(CLAIM), lambda found: found is not None, SECONDS)


def test_no_pod_writes_to_a_claim_of_somebody_else_s(world: World) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
    meta = {"name": NAME, "namespace": world.namespace}
    theirs = world.kube.apply({"apiVersion": "v1", "kind": CLAIM, "metadata": meta, "spec": spec})
    world.operator()
    world.create(cache={"size": "1Gi"})
    for kind in ("ServiceAccount", "ConfigMap", "Service"):
        world.wait_child(kind)
    condition = ready(world, status="False", reason="ForeignObject")
    assert f"{CLAIM} {NAME}" in condition["message"]
    world.schedule(SECOND)
    world.wait_stored(SECOND)
    world.wait_condition("Progressing", status="False", reason="ForeignObject")
    assert world.child("Deployment") is None
    found = world.child(CLAIM)
    assert found is not None
    assert (found["metadata"]["uid"], found["spec"]) == (theirs["metadata"]["uid"], theirs["spec"])
    assert "ownerReferences" not in found["metadata"]

    world.kube.delete(CLAIM, world.namespace, NAME)
    wait_for("their claim to go", lambda: world.child(CLAIM), lambda there: there is None, SECONDS)
    world.schedule(FIRST)  # a pass; else it takes 15 s
    wait_for("a Deployment", lambda: world.child("Deployment"), lambda there: there is not None, SECONDS)
    assert storage(world.child(CLAIM)) == "1Gi"
    assert mounted_claims(world) == [NAME]


def test_an_existing_claim_is_looked_at_and_never_touched(world: World) -> None:
    world.operator()
    world.create(cache={"existingClaim": "models"}, replicas=2)
    condition = ready(world, status="False", reason="CacheNotAsAsked")
    assert "the claim models does not exist in this namespace" in condition["message"]
    world.wait_stored(FIRST)

    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "models", "namespace": world.namespace}
    made = world.kube.apply({"apiVersion": "v1", "kind": CLAIM, "metadata": meta, "spec": spec})
    world.engines(2)
    condition = ready(world, status="True")
    assert "the claim models is ReadWriteOnce, and up to 2 pods mount it" in condition["message"]
    assert mounted_claims(world) == ["models"]
    assert world.kube.get(CLAIM, world.namespace, "models") == made
    assert world.child(CLAIM) is None


def test_scaling_a_claim_for_one_pod_is_refused_also_through_scale(world: World) -> None:
    world.create(cache={"size": "1Gi"})
    with pytest.raises(AssertionError, match="serves one pod, and replicas is above 1"):
        world.kubectl("scale", "dsd", NAME, "--replicas=2")
    world.kubectl("scale", "dsd", NAME, "--replicas=0")
    world.kubectl("scale", "dsd", NAME, "--replicas=1")


@pytest.mark.long
def test_an_autoscaler_is_told_why(world: World) -> None:
    """It looks every 15 s."""
    world.operator()
    world.create(cache={"size": "1Gi"})
    world.wait_child("Deployment")
    target = {"apiVersion": "dsd-operator.io/v1alpha1", "kind": "DSDDeployment", "name": NAME}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4, "metrics": [metric]}
    identity = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "scaler"}}
    world.apply({**identity, "spec": spec})

    def able() -> Json:
        found = json.loads(world.kubectl("get", "hpa", "scaler", "-o", "json"))
        conditions = found["status"].get("conditions") or []
        return next((c for c in conditions if c["type"] == "AbleToScale"), {})

    condition = wait_for("the autoscaler's word", able, lambda c: c.get("reason") == "FailedUpdateScale", SECONDS)
    assert condition["status"] == "False"
    assert "serves one pod, and replicas is above 1; set cache.accessMode to ReadWriteMany" in condition["message"]
    assert world.resource()["spec"]["replicas"] == 1


IDS: Final = """
object.spec.securityContext.?fsGroup.orValue(1000870000) >= 1000870000 &&
object.spec.securityContext.?fsGroup.orValue(1000870000) <= 1000879999 &&
!has(object.spec.securityContext.runAsUser) &&
object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.runAsUser))
"""
"""OpenShift's restricted-v2, as far as ids go."""


def test_a_platform_that_hands_out_ids_gets_none_from_us(world: World) -> None:
    policy, group = world.namespace, "admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "failurePolicy": "Fail",
            "validations": [{"expression": IDS, "message": "fsGroup is not in the range"}]}  # fmt: skip
    bindings = {"policyName": policy, "validationActions": ["Deny"], "matchResources": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}}}  # fmt: skip
    world.apply({"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": policy}, "spec": spec})
    binding = {"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": policy}}
    world.apply({**binding, "spec": bindings})
    try:
        world.operator(FS_GROUP="65532")
        world.create(cache={"size": "1Gi"})
        condition = ready(world, status="False", reason="PodCreationFailed")
        assert "fsGroup is not in the range" in condition["message"]
        world.patch(cache={"fsGroup": 0})
        world.wait_pods(1)
        assert "fsGroup" not in template(world)["securityContext"]
    finally:
        world.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", policy)
