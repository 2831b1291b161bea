"""What a pod names must be in it: told before the API server refuses the pod in its own words."""

from typing import Any

import pytest

from dsd_operator.render.preflight import envelope_problems
from tests.unit.resources import pod_spec, resource


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"podTemplate.spec": {"containers": [{"name": "engin", "env": []}]}},
            "spec.podTemplate.spec.containers[name=engin].image",
            "the engine's own container is called engine",
        ),
        (
            {"podTemplate.spec": {"initContainers": [{"name": "warm", "restartPolicy": "Always"}]}},
            "spec.podTemplate.spec.initContainers[name=warm].image",
            "is missing",
        ),
        (
            {"podTemplate.spec": {"containers": [
                {"name": "engine", "volumeMounts": [{"name": "models", "mountPath": "/models"}]}]}},
            "spec.podTemplate.spec.containers[name=engine].volumeMounts",
            "no volume is called models; add it to spec.podTemplate.spec.volumes",
        ),
        (
            {"resources": {"claims": [{"name": "gpu"}]}},
            "spec.resources.claims",
            "no claim of the pod is called gpu; add it to spec.podTemplate.spec.resourceClaims",
        ),
        (
            {"podTemplate.spec": {"containers": [
                {"name": "agent", "image": "a", "resources": {"claims": [{"name": "gpu"}]}}]}},
            "spec.podTemplate.spec.containers[name=agent].resources.claims",
            "no claim of the pod is called gpu",
        ),
    ],
)  # fmt: skip
def test_a_name_of_nothing_is_a_problem_with_its_path(changes: dict[str, Any], field: str, words: str) -> None:
    (problem,) = envelope_problems(resource(changes))
    assert problem.field == field
    assert words in problem.message


def test_claims_merge_by_name_and_reach_the_engine() -> None:
    claims = [{"name": name, "resourceClaimTemplateName": "gpu"} for name in ("a", "b")]
    engine = {"name": "engine", "resources": {"claims": [{"name": "b"}]}}
    changes = {"resources": {"claims": [{"name": "a", "request": "r"}]},
               "podTemplate.spec": {"resourceClaims": claims, "containers": [engine]}}  # fmt: skip
    assert envelope_problems(resource(changes)) == []
    made = pod_spec(resource(changes))
    assert made["containers"][0]["resources"]["claims"] == [{"name": "a", "request": "r"}, {"name": "b"}]
    assert made["resourceClaims"] == claims


def test_spread_constraints_without_a_selector_are_about_our_pods() -> None:
    own = {"app.kubernetes.io/name": "dsd-engine", "dsd-operator.io/deployment": "demo"}
    theirs = {"matchLabels": {"team": "a"}}
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    zone = {**constraint, "topologyKey": "zone", "labelSelector": theirs}
    made = pod_spec(resource({"podTemplate.spec": {"topologySpreadConstraints": [constraint, zone]}}))
    assert [c["labelSelector"] for c in made["topologySpreadConstraints"]] == [{"matchLabels": own}, theirs]


def test_a_hook_of_the_users_replaces_ours() -> None:
    container = {"name": "engine", "lifecycle": {"preStop": {"httpGet": {"path": "/", "port": 1}}}}
    made = pod_spec(resource({"podTemplate.spec": {"containers": [container]}}))["containers"][0]
    assert made["lifecycle"]["preStop"] == {"httpGet": {"path": "/", "port": 1}}
