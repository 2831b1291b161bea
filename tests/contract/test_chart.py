"""The chart as Helm renders it: strict lint, values that are refused, the CRD's copy, RBAC, and the pod's security.

Whether it installs and works is shown by the end-to-end tests; here the rendered text alone is judged.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dsd_operator.render.security import restricted_violations
from dsd_operator.settings import Settings, variable
from tools import chart
from tools.cluster.api import program
from tools.cluster.paths import REPOSITORY
from tools.cluster.versions import KUBERNETES

CHART: Final = REPOSITORY / "charts" / "dsd-operator"
RELEASE: Final = "dsd-operator"

Manifest = dict[str, Any]


def _helm(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program("helm"), *arguments], capture_output=True, text=True, check=False, timeout=60)


@cache
def _rendered(*values: str, release: str = RELEASE, namespace: str = "dsd-system") -> Sequence[Manifest]:
    sets = [word for value in values for word in ("--set", value)]
    where = ["--namespace", namespace, "--kube-version", KUBERNETES]
    done = _helm("template", release, CHART, *where, *sets)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def _one(kind: str, *values: str, **where: str) -> Manifest:
    (found,) = (m for m in _rendered(*values, **where) if m["kind"] == kind)
    return found


def _container(*values: str) -> Manifest:
    (container,) = _one("Deployment", *values)["spec"]["template"]["spec"]["containers"]
    return dict(container)


def _grants() -> set[tuple[str, str, str]]:
    """(API group, resource, verb) of every rule of the ClusterRole that is about resources."""
    return {
        (group, resource, verb)
        for rule in _one("ClusterRole")["rules"]
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
        for verb in rule["verbs"]
    }


def test_lint_finds_nothing() -> None:
    done = _helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_crd_is_the_generated_one_and_is_kept() -> None:
    (source,) = chart.sources()
    rendered = _one("CustomResourceDefinition")
    assert rendered["spec"] == source["spec"]
    assert rendered["metadata"]["name"] == source["metadata"]["name"]
    assert rendered["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_the_crd_can_be_left_out() -> None:
    assert "CustomResourceDefinition" not in {m["kind"] for m in _rendered("crds.install=false")}


def test_braces_in_a_description_survive_helm() -> None:
    crd = {"kind": "X", "metadata": {"name": "x"}, "spec": {"description": 'for example {{ .Values.x }} or {"a": {}}'}}
    text = chart.template([crd])
    assert '{{ "{{" }} .Values.x }}' in text


def test_the_pod_passes_the_restricted_level() -> None:
    pod = _one("Deployment")["spec"]["template"]["spec"]
    assert restricted_violations(pod) == []
    assert pod["enableServiceLinks"] is False
    assert _container()["securityContext"]["readOnlyRootFilesystem"] is True


def test_no_two_operators_at_once() -> None:
    spec = _one("Deployment")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


def test_every_variable_is_a_setting_of_the_operator() -> None:
    known = {variable(name) for name in Settings.model_fields}
    given = {entry["name"] for entry in _container()["env"]}
    assert given <= known
    required = {variable(name) for name, field in Settings.model_fields.items() if field.is_required()}
    assert required <= given


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_the_operator_accepts_every_log_level(level: str) -> None:
    entries: Mapping[str, str] = {e["name"]: e.get("value", "x") for e in _container(f"logging.level={level}")["env"]}
    names = {variable(name): name for name in Settings.model_fields}
    Settings.model_validate({names[key]: value for key, value in entries.items()})


def test_ports_are_those_the_operator_listens_on() -> None:
    ports = {port["name"]: port["containerPort"] for port in _container()["ports"]}
    defaults = {name: Settings.model_fields[f"{name}_port"].default for name in ports}
    assert ports == defaults


def test_an_operator_that_waits_is_not_killed() -> None:
    """Ready it is once it has seen every resource; until then it may wait, for the API server or for the CRD."""
    paths = {name: probe["httpGet"]["path"] for name, probe in _container().items() if name.endswith("Probe")}
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}


def test_a_digest_after_the_tag_reaches_the_image_and_no_label() -> None:
    tag = f"0.1.0@sha256:{'a' * 64}"
    deployment = _one("Deployment", f"image.tag={tag}")
    assert _container(f"image.tag={tag}")["image"] == f"dsd-operator:{tag}"
    assert "sha256" not in str(deployment["metadata"]) + str(deployment["spec"]["template"]["metadata"])


def test_the_operator_may_not_read_secrets_nor_touch_resources() -> None:
    grants = _grants()
    assert not {grant for grant in grants if grant[1] == "secrets" or "*" in grant}
    assert {verb for _, resource, verb in grants if resource == "dsddeployments"} == {"get", "list", "watch"}
    forbidden = {"delete", "deletecollection", "bind", "escalate", "impersonate"}
    assert not {grant for grant in grants if grant[2] in forbidden}


def test_tokens_may_be_asked_for_its_own_account_only() -> None:
    assert not {grant for grant in _grants() if grant[1].startswith("serviceaccounts/")}
    (rule,) = _one("Role")["rules"]
    assert rule["resources"] == ["serviceaccounts/token"]
    assert rule["resourceNames"] == [_one("ServiceAccount")["metadata"]["name"]]


def test_releases_of_one_name_share_nothing_that_is_not_namespaced() -> None:
    names = [
        {m["metadata"]["name"] for m in _rendered("crds.install=false", namespace=n) if m["kind"].startswith("Cluster")}
        for n in ("team-a", "team-b")
    ]
    assert not names[0] & names[1]


@pytest.mark.parametrize("release", ["d", "x" * 53])
def test_names_stay_valid_for_any_release(release: str) -> None:
    for manifest in _rendered(release=release):
        if not manifest["kind"].startswith(("Cluster", "CustomResource")):
            assert len(manifest["metadata"]["name"]) <= 63


@pytest.mark.parametrize(
    "value",
    ["image.repository=", "image.pullPolicy=Sometimes", "logging.level=loud", "crds.install=maybe", "replicas=2"],
)
def test_wrong_values_are_refused(value: str) -> None:
    done = _helm("template", RELEASE, CHART, "--kube-version", KUBERNETES, "--set", value)
    assert done.returncode != 0
    assert value.split("=")[0].split(".")[0] in done.stderr


def test_the_notes_name_commands_that_fit_the_release(tmp_path: Path) -> None:
    """Helm renders the notes only against a cluster, so a copy of the chart renders them as a template."""
    copy = Path(shutil.copytree(CHART, tmp_path / "chart"))
    (copy / "templates" / "NOTES.txt").rename(copy / "NOTES.txt")
    (copy / "templates" / "notes.yaml").write_text('notes: {{ tpl (.Files.Get "NOTES.txt") . | quote }}')
    done = _helm("template", "a", copy, "--namespace", "ns", "--kube-version", KUBERNETES, "-s", "templates/notes.yaml")
    assert done.returncode == 0, done.stderr
    notes = yaml.safe_load(done.stdout)["notes"]
    assert "kubectl --namespace ns rollout status deployment/a-dsd-operator" in notes
