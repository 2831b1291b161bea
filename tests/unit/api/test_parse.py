"""Reading what the API server stores."""

from copy import deepcopy
from typing import Any

import pytest
from pydantic import ValidationError

from dsd_operator.api import InvalidResource, parse

BODY: dict[str, Any] = {
    "apiVersion": "dsd-operator.io/v1alpha1",
    "kind": "DSDDeployment",
    "metadata": {"name": "demo", "namespace": "team-a", "uid": "u", "generation": 4, "labels": {"a": "b"}},
    "spec": {
        "model": {"name": "acme/tiny-llama"},
        "drafter": {"method": "ngram", "numSpeculativeTokens": 3, "promptLookup": {"max": 4}},
        "schedule": [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3}],
    },
}


def _body(**spec: Any) -> dict[str, Any]:
    body = deepcopy(BODY)
    body["spec"] |= spec
    return body


def test_reads_a_small_resource_with_its_defaults() -> None:
    resource = parse(BODY)
    assert (resource.metadata.namespace, resource.metadata.name, resource.metadata.generation) == ("team-a", "demo", 4)
    assert resource.spec.schedule[0].triple() == (1, 8, 3)
    assert resource.spec.drafter.prompt_lookup is not None
    assert resource.spec.drafter.prompt_lookup.min is None
    assert (resource.spec.replicas, resource.spec.engine.model_runner) == (1, "Auto")
    assert (resource.spec.startup.timeout_seconds, resource.spec.rollout.max_unavailable) == (3600, 1)
    assert resource.status == {}


@pytest.mark.parametrize(
    "spec",
    [
        {"podTemplate": None, "resources": None, "engine": None, "rollout": None, "sharedMemory": None},
        {"engine": {"env": None, "extraArgs": None, "image": None}},
        {"podTemplate": {"metadata": None, "spec": {"tolerations": None, "containers": None}}},
        {"drafter": BODY["spec"]["drafter"] | {"parameters": None, "model": None}},
    ],
)
def test_null_means_absent(spec: dict[str, Any]) -> None:
    resource = parse(_body(**spec))
    assert resource.spec.engine.extra_args == ()
    assert resource.spec.pod_template in ({}, {"spec": {}})
    assert resource.spec.resources == {}
    assert resource.spec.drafter.parameters == {}


def test_null_status_and_metadata_fields_are_absent() -> None:
    body = _body()
    body["metadata"]["deletionTimestamp"] = None
    body["status"] = None
    assert parse(body).metadata.deletion_timestamp is None


def test_whole_floats_are_integers_but_free_maps_keep_their_numbers() -> None:
    drafter = {"method": "ngram", "numSpeculativeTokens": 3.0, "parameters": {"suffix_decoding_max_spec_factor": 1.0}}
    spec = parse(_body(drafter=drafter, resources={"limits": {"cpu": 2.0, "memory": "16Gi"}})).spec
    assert type(spec.drafter.num_speculative_tokens) is int
    assert type(spec.drafter.parameters["suffix_decoding_max_spec_factor"]) is float
    assert spec.resources == {"limits": {"cpu": 2.0, "memory": "16Gi"}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"schedule": []}, "spec.schedule"),
        ({"schedule": None}, "spec.schedule"),
        ({"schedule": [{"startBatchSize": 1, "endBatchSize": "8", "numSpeculativeTokens": 3}]},
         "spec.schedule[0].endBatchSize"),
        ({"drafter": {"method": "ngram", "numSpeculativeTokens": 2.5}}, "spec.drafter.numSpeculativeTokens"),
        ({"drafter": {"method": "ngram", "numSpeculativeTokens": True}}, "spec.drafter.numSpeculativeTokens"),
        ({"model": {}}, "spec.model.name"),
        ({"engine": {"modelRunner": "v1"}}, "spec.engine.modelRunner"),
        ({"engine": {"extraArgs": ["--seed", 0]}}, "spec.engine.extraArgs[1]"),
        ({"engine": {"env": [{"name": "A", "value": 1}]}}, "spec.engine.env[0].value"),
        ({"replicas": -1}, "spec.replicas"),
        ({"podTemplate": []}, "spec.podTemplate"),
    ],
)  # fmt: skip
def test_says_where_an_old_object_does_not_fit(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidResource) as refused:
        parse(_body(**spec))
    assert [p.field for p in refused.value.problems] == [field] or field in {p.field for p in refused.value.problems}
    assert field in str(refused.value)


def test_reports_every_problem() -> None:
    with pytest.raises(InvalidResource) as refused:
        parse(_body(model={}, replicas="2"))
    assert {p.field for p in refused.value.problems} == {"spec.model.name", "spec.replicas"}


def test_an_empty_object_is_invalid_and_not_a_crash() -> None:
    with pytest.raises(InvalidResource):
        parse({})


def test_fields_of_a_newer_crd_are_ignored() -> None:
    assert parse(_body(novelty={"a": 1}, engine={"other": True})) == parse(_body())


def test_resources_cannot_be_changed() -> None:
    resource = parse(BODY)
    with pytest.raises(ValidationError):
        resource.spec.drafter.method = "eagle"


def test_reading_changes_nothing_in_what_was_read() -> None:
    body = _body(podTemplate={"metadata": {"labels": {"a": "b"}}, "spec": {"tolerations": None}})
    before = deepcopy(body)
    parse(body)
    assert body == before
