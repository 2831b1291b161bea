"""Which description of the pods is used: the stored one, what runs, or a new one."""

from copy import deepcopy
from typing import Any, Final

import pytest

from dsd_operator.api import DSDDeployment
from dsd_operator.render.history import LIMIT, RENDERED_BY, Pods, Running, choose, expired, is_readable
from dsd_operator.render.owner import ENVELOPE
from dsd_operator.render.workload import pods_of
from tests.unit.resources import CONTEXT, manifests, resource

NOBODY: Final = Running(None, "us")
OTHER: Final = {"engine.maxNumSeqs": 8}


def rendered(made: DSDDeployment, version: str = "1") -> dict[str, Any]:
    """What this version of the operator renders."""
    described = deepcopy(pods_of(made, CONTEXT))
    described["template"]["metadata"]["annotations"]["version"] = version
    return described


def chosen(
    made: DSDDeployment, revisions: list[Any] | None = None, running: Running = NOBODY, version: str = "1"
) -> Pods:
    return choose(made, rendered(made, version), revisions or [], running, version)


def stored(pods: Pods) -> dict[str, Any]:
    """The revision as the API server keeps it."""
    return deepcopy(dict(pods.manifest))


def version_of(pods: Pods) -> str:
    return str(pods.described["template"]["metadata"]["annotations"]["version"])


def live(made: DSDDeployment, version: str = "0", **labels: str) -> dict[str, Any]:
    """The Deployment of another version of the operator, with a default and a field of somebody else."""
    deployment = deepcopy(manifests(made)["Deployment"])
    deployment["spec"]["template"] = rendered(made, version)["template"]
    template = deployment["spec"]["template"]
    fields = fields_of(template)
    template["spec"]["dnsPolicy"] = "ClusterFirst"
    template["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now"
    entry = {"manager": "us", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": fields}}}
    deployment["metadata"] |= {"managedFields": [entry], "labels": labels}
    return deployment


def fields_of(value: Any) -> dict[str, Any]:
    """The fieldsV1 of a manifest that somebody applied."""
    if isinstance(value, dict) and value:
        return {f"f:{name}": fields_of(item) for name, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}} | fields_of(item) for item in value}
    return {}


DONE: Final = {
    "observedGeneration": 4,
    "conditions": [{"type": "Progressing", "status": "False", "reason": "RolledOut"}],
}


def test_the_first_revision() -> None:
    pods = chosen(resource())
    manifest = pods.manifest
    assert not pods.stored
    assert manifest["revision"] == 1
    assert manifest["metadata"]["name"] == f"demo-{pods.envelope}"
    assert manifest["metadata"]["labels"][ENVELOPE] == pods.envelope
    assert manifest["metadata"]["annotations"] == {RENDERED_BY: "1"}
    assert manifest["metadata"]["ownerReferences"][0]["name"] == "demo"
    assert manifest["data"]["pods"] == pods.described == rendered(resource())
    assert is_readable(manifest)


def test_names_fit_into_a_label() -> None:
    assert len(chosen(resource(name="x" * 200)).manifest["metadata"]["name"]) <= 63


def test_a_newer_operator_uses_what_is_stored() -> None:
    first = chosen(resource(), version="1")
    again = chosen(resource(), [stored(first)], version="2")
    assert version_of(again) == "1"
    assert again.stored
    assert again.manifest == first.manifest


def test_a_hot_change_is_no_other_envelope() -> None:
    first = chosen(resource())
    hot = resource({"replicas": 7, "rollout": {"maxSurge": 1}})
    assert chosen(hot, [stored(first)], version="2").described == first.described


def test_another_envelope_is_rendered_by_this_operator() -> None:
    first = chosen(resource())
    second = chosen(resource(OTHER), [stored(first)], version="2")
    assert version_of(second) == "2"
    assert second.manifest["revision"] == 2
    assert not second.stored


def test_an_envelope_that_returns_is_the_newest_with_what_was_stored() -> None:
    first = chosen(resource())
    second = chosen(resource(OTHER), [stored(first)])
    back = chosen(resource(), [stored(first), stored(second)], version="3")
    assert version_of(back) == "1"
    assert back.manifest["revision"] == 3
    assert back.manifest["data"] == first.manifest["data"]
    assert back.manifest["metadata"]["annotations"][RENDERED_BY] == "1"
    assert not back.stored


def test_a_restart_renders_anew() -> None:
    first = chosen(resource())
    restarted = resource({"rollout": {"restartedAt": "2026-01-01T00:00:00Z"}})
    pods = chosen(restarted, [stored(first)], version="2")
    assert version_of(pods) == "2"
    annotations = pods.described["template"]["metadata"]["annotations"]
    assert annotations["dsd-operator.io/restarted-at"] == "2026-01-01T00:00:00Z"


def test_what_runs_is_taken_over_where_the_history_was_lost() -> None:
    wanted = chosen(resource()).envelope
    pods = chosen(resource(), running=Running(live(resource(), **{ENVELOPE: wanted}), "us"))
    assert pods.described == rendered(resource(), "0"), "our own fields, and nothing else of it"
    assert pods.manifest["metadata"]["annotations"][RENDERED_BY] == ""


def test_what_runs_for_another_envelope_is_not() -> None:
    status = {**DONE}
    other = live(resource(), **{ENVELOPE: "0000000000"})
    assert version_of(chosen(resource(status=status), running=Running(other, "us"))) == "1"


def test_a_workload_from_before_the_history_is_taken_over() -> None:
    pods = chosen(resource(status=DONE), running=Running(live(resource()), "us"))
    assert version_of(pods) == "0"


@pytest.mark.parametrize(
    "status",
    [
        {},
        {**DONE, "observedGeneration": 3},
        {**DONE, "conditions": [{"type": "Progressing", "reason": "ApplyFailed"}]},
        {**DONE, "conditions": [{"type": "Progressing", "reason": "InvalidSpec"}]},
        {"observedGeneration": 4},
    ],
)
def test_but_not_where_nobody_knows_what_it_was_made_for(status: dict[str, Any]) -> None:
    assert version_of(chosen(resource(status=status), running=Running(live(resource()), "us"))) == "1"


@pytest.mark.parametrize("field", ["image", "command", "args", "env"])
def test_nor_where_somebody_took_a_part_of_the_engine_from_us(field: str) -> None:
    made = live(resource())
    engine = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    del engine['k:{"name":"engine"}'][f"f:{field}"]
    assert version_of(chosen(resource(status=DONE), running=Running(made, "us"))) == "1"


def test_the_newest_are_kept_and_the_one_in_use_always() -> None:
    used = chosen(resource())
    others = [{"metadata": {"name": f"demo-{number}"}, "revision": number} for number in range(2, 16)]
    gone = expired([stored(used), *others], used)
    assert [revision["revision"] for revision in gone] == [2, 3, 4, 5, 6]
    assert len(others) + 1 - len(gone) == LIMIT


def test_a_revision_of_an_earlier_resource_of_that_name_is_written_anew() -> None:
    first = stored(chosen(resource()))
    first["metadata"]["ownerReferences"] = []
    assert not chosen(resource(), [first]).stored


@pytest.mark.parametrize("data", [None, {}, {"spec": {}}, {"envelope": {}, "pods": None}])
def test_revisions_of_other_controllers_are_passed_over(data: Any) -> None:
    assert not is_readable({"data": data})
