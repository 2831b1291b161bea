"""What children carry besides their spec: labels, owner, and nothing of the resource's own marks."""

import re

import pytest

from dsd_operator.api import parse
from dsd_operator.render.labels import WATCHED_SELECTOR, all_pods, labels, selector, selector_string, worker_labels
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import ENVELOPE
from tests.unit.resources import body, manifests, resource


def test_the_plan_lists_every_child_in_apply_order() -> None:
    made = list(manifests(resource()))
    assert made == ["ServiceAccount", "ConfigMap", "Service", "Deployment", "PodDisruptionBudget"]


@pytest.mark.parametrize("kind", ["ServiceAccount", "ConfigMap", "Service", "Deployment"])
def test_children_are_owned_and_labelled(kind: str) -> None:
    meta = manifests(resource(name="tiny-llama-v0.1"))[kind]["metadata"]
    assert meta["name"] == names_for("tiny-llama-v0.1").base
    assert meta["namespace"] == "team-a"
    assert meta["labels"].items() >= labels(names_for("tiny-llama-v0.1")).items()
    assert meta["labels"].keys() <= {*labels(names_for("tiny-llama-v0.1")), ENVELOPE}
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("DSDDeployment", "tiny-llama-v0.1", "11111111-2222")
    assert owner["controller"] is True
    assert "blockOwnerDeletion" not in owner


def test_service_and_deployment_select_the_pods_by_two_labels() -> None:
    made = manifests(resource())
    wanted = {"app.kubernetes.io/name": "dsd-engine", "dsd-operator.io/deployment": "demo"}
    assert made["Service"]["spec"]["selector"] == wanted
    assert made["Deployment"]["spec"]["selector"] == {"matchLabels": wanted}
    assert wanted.items() <= made["Deployment"]["spec"]["template"]["metadata"]["labels"].items()


def test_selector_strings_match_the_labels() -> None:
    names = names_for("demo")
    assert selector_string(names) == "app.kubernetes.io/name=dsd-engine,dsd-operator.io/deployment=demo"
    for carried in (labels(names), worker_labels(names), all_pods(names)):
        assert WATCHED_SELECTOR in {f"{k}={v}" for k, v in carried.items()}
    assert selector(names).items() <= labels(names).items()


def test_marks_of_other_tools_on_the_resource_stay_there() -> None:
    made = body()
    made["metadata"]["labels"] = {"app.kubernetes.io/instance": "platform", "argocd.argoproj.io/instance": "platform"}
    made["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "x", "meta.helm.sh/release-name": "y"}
    rendered = repr(manifests(parse(made)))
    assert not re.search("argocd|helm|platform|app.kubernetes.io/instance", rendered)


def test_model_ids_and_images_become_no_label() -> None:
    image = "registry.local:5000/vllm:v0.32.0@sha256:" + "0" * 64
    changes = {"model.name": "Acme-Labs/Tiny.Llama_v2-Instruct", "model.servedNames": ["a/" + "b" * 90]}
    made = manifests(resource({**changes, "engine.image": image}))
    for manifest in made.values():
        kept = {name: value for name, value in manifest["metadata"]["labels"].items() if name != ENVELOPE}
        assert kept == labels(names_for("demo"))
    template = made["Deployment"]["spec"]["template"]
    assert template["metadata"]["labels"] == labels(names_for("demo"))
    assert template["spec"]["containers"][0]["image"] == image
