"""The CRD itself: it fits the models, compiles on a real API server, explains every field, agrees with our tables."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsd_operator.api import crdgen, parse
from dsd_operator.render.pod_template import pod_template
from dsd_runtime.options import owned_problems
from dsd_runtime.support import MODEL_RUNNERS, MODEL_USE, ModelRunner, judge
from dsd_runtime.vllm_options import METHODS
from tests.contract.admission import BASE, Admission, Case, Refused, merge
from tests.contract.changes import REFUSED
from tests.contract.conftest import run_kubectl
from tests.contract.rejected import ARGUMENTS, REJECTED
from tools.cluster.paths import REPOSITORY

CRD = REPOSITORY / "crds" / "dsddeployments.yaml"


def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = crdgen.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from _fields(field, f"{path}.{name}")
    if "items" in schema:
        yield from _fields(schema["items"], f"{path}[]")


def test_checked_in_crd_fits_the_models() -> None:
    assert CRD.read_text() == crdgen.render()


def test_check_fails_on_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drifted = tmp_path / "crd.yaml"
    drifted.write_text(crdgen.render().replace("maxItems: 32", "maxItems: 33"))
    for path, code in ((CRD, 0), (drifted, 1)):
        monkeypatch.setattr("sys.argv", ["crdgen", "--check", str(path)])
        assert crdgen.main() == code


@pytest.mark.parametrize(("path", "field"), [f for f in _fields(_schema()) if f[0] != ".metadata"])
def test_every_field_has_a_description(path: str, field: dict[str, Any]) -> None:
    assert len(field.get("description", "")) > 8, path


def test_every_list_of_the_spec_is_bounded() -> None:
    """The cost of CEL rules is estimated from the bounds."""
    assert not [
        p for p, f in _fields(_schema()["properties"]["spec"]) if f.get("type") == "array" and "maxItems" not in f
    ]


@pytest.mark.integration
def test_api_server_establishes_it_without_complaints(api_server: Path) -> None:
    """Every CEL rule compiles and stays within the API server's cost budget; the schema is structural."""
    crd = yaml.safe_load(run_kubectl(api_server, "get", "crd", "dsddeployments.dsd-operator.io", "-o", "yaml"))
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("dsd.spec.drafter", "largest number of draft tokens (K)"),
        ("dsd.spec.schedule", "Largest batch size of the range"),
        ("dsd.spec.smoothing", "After a change, K stays for at least so many engine steps"),
        ("dsd.spec.engine.extraArgs", "refused in every spelling"),
        ("dsd.status.schedule", "mounted in them brings"),
    ],
)
def test_kubectl_explains(api_server: Path, field: str, words: str) -> None:
    assert words in " ".join(run_kubectl(api_server, "explain", field).split())


@pytest.mark.integration
def test_kubectl_gets_and_scales(api_server: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "demo.yaml"
    manifest.write_text(yaml.safe_dump(BASE))
    status = {"ready": "1/2", "schedule": {"applied": "0/1"}, "replicas": 2, "selector": "a=b"}
    run_kubectl(api_server, "create", "-f", str(manifest))
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    try:
        run_kubectl(api_server, "patch", "dsd", "demo", *patch)
        run_kubectl(api_server, "scale", "dsd", "demo", "--replicas=3")
        head, row = run_kubectl(api_server, "get", "dsd", "demo").splitlines()
        scale = json.loads(run_kubectl(api_server, "get", "dsd", "demo", "--subresource=scale", "-o", "json"))
    finally:
        run_kubectl(api_server, "delete", "dsd", "demo")
    assert head.split() == ["NAME", "MODEL", "METHOD", "MAXK", "READY", "SCHEDULE", "AGE"]
    assert row.split()[:6] == ["demo", "acme/tiny-llama", "ngram", "3", "1/2", "0/1"]
    assert (scale["spec"]["replicas"], scale["status"]) == (3, {"replicas": 2, "selector": "a=b"})


@pytest.mark.integration
def test_yaml_fractions_that_are_whole_reach_the_api_server_as_integers(api_server: Path, tmp_path: Path) -> None:
    """kubectl turns `3.0` into 3; only a JSON client can send a fraction (see `rejected`)."""
    manifest = tmp_path / "whole.yaml"
    manifest.write_text(yaml.safe_dump(merge(BASE, {"spec": {"drafter": {"numSpeculativeTokens": 3.0}}})))
    assert "numSpeculativeTokens: 3.0" in manifest.read_text()
    assert "created" in run_kubectl(api_server, "create", "--dry-run=server", "-f", str(manifest))


@pytest.mark.integration
def test_stored_object_has_the_defaults(api_server: Path) -> None:
    spec = Admission(api_server).create(BASE)["spec"]
    assert spec["replicas"] == 1
    assert spec["engine"] == {"modelRunner": "Auto", "nodes": 1}
    assert spec["startup"] == {"timeoutSeconds": 3600}
    assert spec["rollout"] == {"maxSurge": 0, "maxUnavailable": 1, "minReadySeconds": 5, "drainTimeoutSeconds": 30}


@pytest.mark.integration
def test_every_rule_has_a_case_that_it_refuses(api_server: Path) -> None:
    """A rule without a rejected case could be wrong, or gone, and no test would notice."""
    admission = Admission(api_server)
    told = [_refusal(admission.create, case.body()) for case in REJECTED]
    told += [_refusal(admission.change, Case("before", before).body(), case.body()) for before, case in REFUSED]
    answers = "\n".join(filter(None, told))
    rules = list(_rules(_schema()))
    assert len(rules) > 60
    assert [rule["message"] for rule in rules if not any(text in answers for text in _texts(rule))] == []


def _rules(schema: Any) -> Iterator[dict[str, str]]:
    if isinstance(schema, dict):
        yield from schema.get("x-kubernetes-validations", [])
        for value in schema.values():
            yield from _rules(value)


def _texts(rule: dict[str, str]) -> list[str]:
    """What an answer may hold: the literals of the message expression, else the message."""
    expression = rule.get("messageExpression", "")
    tokens = re.findall(r"""'[^']*'|"[^"]*\"""", expression)
    literals = [token[1:-1] for token in tokens if len(token) > 12]
    return literals or [rule["message"]]


@pytest.mark.integration
@pytest.mark.parametrize("parallel", [False, True], ids=["", "parallel"])
@pytest.mark.parametrize("runner", MODEL_RUNNERS)
@pytest.mark.parametrize("method", METHODS)
def test_admission_allows_the_same_k_as_the_runtime(
    api_server: Path, method: str, runner: ModelRunner, parallel: bool
) -> None:
    """The CEL rules are made from support.py; here the API server must answer as `judge` does, K by K."""
    admission = Admission(api_server)
    for maximum in (1, 2):
        verdict = judge(method, runner, maximum, parallel_drafting=parallel)
        taken = [
            k
            for k in range(maximum + 1)
            if _refusal(admission.create, _resource(method, runner, maximum, k, parallel)) is None
        ]
        assert tuple(taken) == verdict.allowed


def _resource(method: str, runner: str, maximum: int, k: int, parallel: bool) -> dict[str, Any]:
    model = {"custom_class": "my.Proposer"}.get(method, "acme/d") if MODEL_USE[method] == "required" else "!delete"
    drafter = {"method": method, "model": model, "numSpeculativeTokens": maximum, "promptLookup": "!delete"}
    spec = {
        "drafter": drafter | {"parameters": {"parallel_drafting": parallel}},
        "schedule": [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": k}],
        "engine": {"modelRunner": runner},
    }
    merged: dict[str, Any] = merge(BASE, {"spec": spec})
    return merged


def _refusal(ask: Callable[..., object], *bodies: dict[str, Any]) -> str | None:
    try:
        ask(*bodies)
    except Refused as refused:
        return refused.message
    return None


def _about_arguments(case: Case) -> bool:
    """Not about their type or length, nor about another field: the models and the API server see to those."""
    engine = case.body()["spec"]["engine"]
    items = engine["extraArgs"]
    return list(engine) == ["extraArgs"] and isinstance(items, list) and all(type(i) is str for i in items)


@pytest.mark.parametrize(
    "case", [c for c in ARGUMENTS if _about_arguments(c) and "too-long" not in c.name], ids=lambda case: case.name
)
def test_what_admission_refuses_in_arguments_preflight_refuses_too(case: Case) -> None:
    """An object stored before a rule existed must not get through."""
    assert owned_problems(case.body()["spec"]["engine"]["extraArgs"])


@pytest.mark.integration
def test_kubectl_refuses_with_the_same_words(api_server: Path, tmp_path: Path) -> None:
    """What a person sees: kubectl prints the rule's message."""
    manifest = tmp_path / "bad.yaml"
    manifest.write_text(yaml.safe_dump(merge(BASE, {"spec": {"drafter": {"method": "EAGLE3"}}})))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run_kubectl(api_server, "create", "--dry-run=server", "-f", str(manifest))
    assert "methods are written in lower case: eagle3" in failed.value.stderr


_FILLED = {
    "podTemplate": {"metadata": {"labels": {"team": "a"}}, "spec": {"nodeSelector": {"pool": "a"}}},
    "resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
    "sharedMemory": {"sizeLimit": "8Gi"},
    "startup": {"timeoutSeconds": 7200},
    "rollout": {"maxSurge": 1},
    "smoothing": {"dwellSteps": 20},
    "engine": {"env": [{"name": "A", "value": "b"}], "extraArgs": ["--seed=0"], "maxNumSeqs": 8},
    "drafter": {"parameters": {"quantization": "fp8"}, "preparedTokens": [3]},
    "model": {"servedNames": ["a"], "tokenSecretRef": {"name": "a", "key": "b"}},
}


@pytest.mark.integration
@pytest.mark.parametrize(
    "emptied",
    [
        *(
            {name: {}}
            for name in ("podTemplate", "resources", "sharedMemory", "startup", "rollout", "engine", "smoothing")
        ),
        {"podTemplate": {"metadata": {}}},
        {"podTemplate": {"metadata": {"labels": {}}}},
        {"podTemplate": {"spec": {}}},
        {"podTemplate": {"spec": {"nodeSelector": {}}}},
        {"resources": {"limits": {}, "requests": {}, "claims": []}},
        {"engine": {"env": [], "extraArgs": []}},
        {"drafter": {"parameters": {}}},
        {"model": {"servedNames": []}},
    ],
    ids=json.dumps,
)
def test_what_was_filled_may_be_emptied(api_server: Path, tmp_path: Path, emptied: dict[str, Any]) -> None:
    """By server-side apply, which makes a null of an object that loses all that is in it."""
    manifest = tmp_path / "demo.yaml"
    try:
        for change in (_FILLED, emptied):
            manifest.write_text(yaml.safe_dump(merge(BASE, {"spec": change})))
            run_kubectl(api_server, "apply", "--server-side", "-f", str(manifest))
        stored = yaml.safe_load(run_kubectl(api_server, "get", "dsd", "demo", "-o", "yaml"))
    finally:
        run_kubectl(api_server, "delete", "dsd", "demo", "--ignore-not-found")
    unchanged = parse(Admission(api_server).create(BASE))
    assert pod_template(parse(stored), "image") == pod_template(unchanged, "image")
