"""The user's podTemplate over our pod."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_operator.api import parse
from dsd_operator.render.labels import labels, selector
from dsd_operator.render.names import names_for
from dsd_operator.render.preflight import envelope_problems, problems
from tests.unit.resources import body, engine, manifests, pod_spec, resource


def templated(**spec: Any) -> dict[str, Any]:
    return {"podTemplate.spec": spec}


def engine_with(**fields: Any) -> dict[str, Any]:
    return templated(containers=[{"name": "engine", **fields}])


def mounts(changes: dict[str, Any]) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in engine(resource(changes))["volumeMounts"]}


def volumes(changes: dict[str, Any]) -> list[str]:
    return [volume["name"] for volume in pod_spec(resource(changes))["volumes"]]


def test_labels_and_annotations_reach_the_pod() -> None:
    metadata = {"creationTimestamp": None, "annotations": {"sidecar.istio.io/inject": "false"}, "labels": {"team": "a"}}
    template = manifests(resource({"podTemplate.metadata": metadata}))["Deployment"]["spec"]["template"]
    assert template["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert template["metadata"]["labels"]["team"] == "a"


@pytest.mark.parametrize("label", labels(names_for("demo")))
def test_our_labels_cannot_be_overridden(label: str) -> None:
    made = manifests(resource({"podTemplate.metadata": {"labels": {label: "mine"}}}))["Deployment"]["spec"]
    assert made["template"]["metadata"]["labels"] == labels(names_for("demo"))
    assert made["selector"]["matchLabels"] == selector(names_for("demo"))


@pytest.mark.parametrize(
    "changes",
    [
        {"podTemplate": None},
        {"podTemplate": {"metadata": None, "spec": None}},
        {"podTemplate.spec": {"tolerations": None, "containers": None, "nodeSelector": None, "volumes": []}},
        {"podTemplate.spec": {"containers": [{"name": "engine", "env": None, "resources": None}]}},
        {"resources": None, "engine": None},
        {"engine": {"env": None, "extraArgs": None}},
    ],
)
def test_null_means_absent(changes: dict[str, Any]) -> None:
    assert problems(resource(changes)) == []
    plain, made = manifests(resource()), manifests(resource(changes))
    assert made.keys() == plain.keys()
    assert made["Deployment"]["spec"] == plain["Deployment"]["spec"]


def test_the_engine_merges_by_name_and_others_are_added() -> None:
    containers = [{"name": "proxy", "image": "p"}, {"name": "engine", "workingDir": "/w"}]
    spec = pod_spec(resource(templated(containers=containers)))
    assert [container["name"] for container in spec["containers"]] == ["engine", "proxy"]
    assert spec["containers"][0]["workingDir"] == "/w"
    assert spec["containers"][0]["command"] == ["dsd-serve"]


def test_all_tolerations_arrive_without_exact_duplicates() -> None:
    tolerations = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        {"key": "pool", "value": "a"},
        {"key": "pool", "value": "b"},
    ]
    assert pod_spec(resource(templated(tolerations=[*tolerations, tolerations[2]])))["tolerations"] == tolerations


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/", "//dev/./shm"])
def test_the_users_shared_memory_replaces_ours(path: str) -> None:
    changes = templated(
        volumes=[{"name": "mine", "emptyDir": {"medium": "Memory"}}],
        containers=[{"name": "engine", "volumeMounts": [{"name": "mine", "mountPath": path}]}],
    )
    assert mounts(changes)[path] == "mine"
    assert "dsd-shm" not in volumes(changes)
    assert "mine" in volumes(changes)


def test_a_volume_named_as_one_of_ours_takes_its_place() -> None:
    claim = {"name": "dsd-home", "persistentVolumeClaim": {"claimName": "cache"}}
    spec = pod_spec(resource(templated(volumes=[claim])))
    assert [volume for volume in spec["volumes"] if volume["name"] == "dsd-home"] == [claim]


def test_a_users_volume_stays_though_only_a_sidecar_or_nobody_mounts_it() -> None:
    assert "spare" in volumes(templated(volumes=[{"name": "spare", "emptyDir": {}}]))


def test_one_port_8000_under_our_name() -> None:
    ports = engine(resource(engine_with(ports=[{"name": "api", "containerPort": 8000}])))["ports"]
    assert ports == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]


def test_a_probe_takes_single_fields_or_another_handler() -> None:
    slower = engine(resource(engine_with(startupProbe={"failureThreshold": 3})))["startupProbe"]
    assert slower["failureThreshold"] == 3
    assert slower["httpGet"]["path"] == "/health"
    other = engine(resource(engine_with(livenessProbe={"exec": {"command": ["true"]}})))["livenessProbe"]
    assert other["exec"] == {"command": ["true"]}
    assert "httpGet" not in other


def test_security_and_pull_secrets_come_from_the_template() -> None:
    secrets = [{"name": "regcred"}]
    spec = pod_spec(resource(templated(securityContext={"runAsUser": 1000870000}, imagePullSecrets=secrets)))
    assert spec["securityContext"]["runAsUser"] == 1000870000
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["imagePullSecrets"] == secrets
    assert "imagePullSecrets" not in manifests(resource(templated(imagePullSecrets=secrets)))["ServiceAccount"]


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (templated(nodeSelector={"gpu": True}), "spec.podTemplate.spec.nodeSelector.gpu", 'quote it: "true"'),
        (templated(nodeSelector={"size": 4}), "spec.podTemplate.spec.nodeSelector.size", 'quote it: "4"'),
        (templated(containers={}), "spec.podTemplate.spec.containers", "must be a list"),
        (templated(containers=["engine"]), "spec.podTemplate.spec.containers[0]", "must be an object"),
        (templated(containers=[{"image": "x"}]), "spec.podTemplate.spec.containers[0].name", "is missing"),
        (engine_with(env=[{"name": "A", "value": 1}]), "spec.podTemplate.spec.containers[0].env[0].value", "quote it"),
        (engine_with(env=[{"name": "A"}, {"name": "A"}]), "spec.podTemplate.spec.containers[0].env", "name A stands 2"),
        (templated(volumes=[{"name": "v"}] * 2), "spec.podTemplate.spec.volumes", "name v stands 2 times"),
        (
            engine_with(ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]),
            "spec.podTemplate.spec.containers[0].ports",
            "containerPort 1, protocol TCP stands 2 times",
        ),
        ({"podTemplate.metadata": {"labels": ["a"]}}, "spec.podTemplate.metadata.labels", "must be a map"),
        ({"podTemplate.metadata": {"name": "x"}}, "spec.podTemplate.metadata.name", "only labels and annotations"),
        ({"podTemplate": {"spec": "x"}}, "spec.podTemplate.spec", "must be an object"),
        (engine_with(image="x"), "spec.podTemplate.spec.containers[0].image", "spec.engine.image"),
        (engine_with(args=["x"]), "spec.podTemplate.spec.containers[0].args", "spec.engine.extraArgs"),
        (engine_with(command=["x"]), "spec.podTemplate.spec.containers[0].command", "spec.engine.extraArgs"),
        (templated(enableServiceLinks=True), "spec.podTemplate.spec.enableServiceLinks", "must stay off"),
        (templated(volumes=[{"name": "dsd-config"}]), "spec.podTemplate.spec.volumes[0].name", "operator's own"),
        *(
            (
                engine_with(volumeMounts=[{"name": "v", "mountPath": place}]),
                "spec.podTemplate.spec.containers[0].volumeMounts[0].mountPath",
                "belongs to the runtime",
            )
            for place in ("/run/dsd/", "/run//dsd/prometheus", "/run/../etc/dsd")
        ),
        (
            engine_with(volumeMounts=[{"name": "v", "mountPath": "/data"}, {"name": "v", "mountPath": "/data/"}]),
            "spec.podTemplate.spec.containers[0].volumeMounts",
            "mountPath /data stands 2 times",
        ),
        (
            engine_with(resources={"limits": {"nvidia.com/gpu": "0.5"}}),
            "spec.podTemplate.spec.containers[0].resources.limits.nvidia.com/gpu",
            "whole devices",
        ),
    ],
)
def test_what_cannot_be_merged_is_a_problem_with_its_path(changes: dict[str, Any], path: str, words: str) -> None:
    (problem,) = envelope_problems(resource(changes))
    assert problem.field == path
    assert words in problem.message
    made = manifests(resource(changes))
    assert "Deployment" not in made
    assert {"ServiceAccount", "ConfigMap", "Service"} <= made.keys()


_KEYS = st.sampled_from(
    ["metadata", "spec", "labels", "containers", "name", "env", "value", "volumeMounts", "mountPath", "volumes",
     "tolerations", "ports", "containerPort", "startupProbe", "exec", "resources", "limits", "securityContext"]
)  # fmt: skip
_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec"]), _JSON))
def test_any_template_renders_or_is_a_problem(template: dict[str, Any]) -> None:
    made = parse(body({"podTemplate": template}))
    assert ("Deployment" in manifests(made)) == (not envelope_problems(made))


_NAME = st.sampled_from(["engine", "proxy"])


@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": _NAME},
            optional={"env": st.none() | st.lists(_JSON, max_size=2), "startupProbe": _JSON, "resources": _JSON},
        ),
        max_size=3,
    )
)
def test_any_container_renders_or_is_a_problem(containers: list[Any]) -> None:
    made = parse(body(templated(containers=containers)))
    assert ("Deployment" in manifests(made)) == (not envelope_problems(made))
