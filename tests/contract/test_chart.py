"""The chart as Helm renders it: strict lint, values that are refused, the CRD's copy, RBAC, and the pod's security.

Whether it installs and works is shown by the end-to-end tests; here the rendered text alone is judged.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from dsd_operator.engine.address import PORT
from dsd_operator.render.labels import labels
from dsd_operator.render.names import names_for
from dsd_operator.render.restricted import restricted_violations
from dsd_operator.settings import Settings, from_environment, variable
from tests.chart import CHART, RELEASE, Manifest, helm, notes, rendered
from tools import chart

DIGEST: Final = f"sha256:{'a' * 64}"


def _rendered(*values: str, **where: str) -> list[Manifest]:
    return list(rendered(*(word for value in values for word in ("--set", value)), **where))


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
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_crd_is_the_generated_one_and_is_kept() -> None:
    (source,) = chart.sources()
    crd = _one("CustomResourceDefinition")
    assert crd["spec"] == source["spec"]
    assert crd["metadata"]["name"] == source["metadata"]["name"]
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


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


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ("image.tag=v2", "dsd-operator:v2"),
        (f"image.tag=v2@{DIGEST}", f"dsd-operator:v2@{DIGEST}"),
        (f"image.digest={DIGEST}", f"dsd-operator@{DIGEST}"),
        (f"image.digest={DIGEST},image.tag=v2", f"dsd-operator:v2@{DIGEST}"),
        ("image.repository=registry.example:5000/x", "registry.example:5000/x:0.1.0"),
    ],
)
def test_an_image_goes_by_tag_or_digest_and_into_no_label(values: str, image: str) -> None:
    deployment = _one("Deployment", values)
    assert _container(values)["image"] == image
    assert "sha256" not in str(deployment["metadata"]) + str(deployment["spec"]["template"]["metadata"])
    entries = {e["name"]: e.get("value") for e in _container(values.replace("image.", "engineImage."))["env"]}
    assert entries["DSD_OPERATOR_RUNTIME_IMAGE"] == image.replace("dsd-operator", "dsd-runtime")


def test_the_operator_may_not_read_secrets_nor_touch_resources() -> None:
    grants = _grants()
    assert not {grant for grant in grants if grant[1] == "secrets" or "*" in grant}
    assert {verb for _, resource, verb in grants if resource == "dsddeployments"} == {"get", "list", "watch"}
    forbidden = {"delete", "deletecollection", "bind", "escalate", "impersonate"}
    deletable = {
        ("apps", "controllerrevisions", "delete"),
        ("apps", "deployments", "delete"),
        ("leaderworkerset.x-k8s.io", "leaderworkersets", "delete"),
        ("gateway.networking.k8s.io", "httproutes", "delete"),
        ("inference.networking.k8s.io", "inferencepools", "delete"),
        ("monitoring.coreos.com", "podmonitors", "delete"),
        ("policy", "poddisruptionbudgets", "delete"),
        ("networking.k8s.io", "networkpolicies", "delete"),
    }
    assert {grant for grant in grants if grant[2] in forbidden} == deletable


def test_tokens_may_be_asked_for_its_own_account_only() -> None:
    assert not {grant for grant in _grants() if grant[1].startswith("serviceaccounts/")}
    (rule,) = _one("Role")["rules"]
    assert rule["resources"] == ["serviceaccounts/token"]
    assert rule["resourceNames"] == [_one("ServiceAccount")["metadata"]["name"]]


def _names_outside_its_namespace(release: str, namespace: str, *values: str) -> set[str]:
    manifests = _rendered("crds.install=false", *values, release=release, namespace=namespace)
    return {m["metadata"]["name"] for m in manifests if m["metadata"].get("namespace") != namespace}


@pytest.mark.parametrize("values", [(), ("watchNamespaces={chat}",), ("fullnameOverride=dsd",)])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("dsd-operator", "team-a"), ("dsd-operator", "team-b")),
        (("a", "team"), ("dsd-operator", "team-a")),
        (("x" * 53, "n" * 62), ("x" * 53, "n" * 63)),
        (("one", "team"), ("two", "team")),
    ],
)
def test_no_two_releases_share_what_is_outside_their_namespaces(
    one: tuple[str, str], other: tuple[str, str], values: tuple[str, ...]
) -> None:
    names = [_names_outside_its_namespace(*release, *values) for release in (one, other)]
    assert all(names)
    assert not names[0] & names[1]
    assert max(map(len, names[0] | names[1])) <= 63


@pytest.mark.parametrize("release", ["d", "x" * 53])
def test_names_stay_valid_for_any_release(release: str) -> None:
    """Most names are DNS labels or become label values; a ConfigMap's may be longer."""
    longer = ("ConfigMap", "CustomResourceDefinition")
    names = [m["metadata"]["name"] for m in _rendered(release=release) if m["kind"] not in longer]
    assert [name for name in names if len(name) > 63] == []


def test_a_release_may_start_with_a_digit_and_a_service_may_not() -> None:
    assert _one("Service", release="1st")["metadata"]["name"] == "dsd-1st-dsd-operator-metrics"


# Chosen namespaces

TEAMS: Final = "watchNamespaces={team-a,team-b}"


def test_chosen_namespaces_get_roles_and_the_cluster_none() -> None:
    manifests = _rendered(TEAMS)
    assert not [m for m in manifests if m["kind"].startswith("ClusterRole")]
    roles = [m for m in manifests if m["kind"] == "Role"]
    assert {m["metadata"]["namespace"] for m in roles} == {"team-a", "team-b", "dsd-system"}
    everywhere = [rule for rule in _one("ClusterRole")["rules"] if "nonResourceURLs" not in rule]
    assert [m["rules"] for m in roles if m["metadata"]["namespace"] != "dsd-system"] == [everywhere, everywhere]
    bindings = [m for m in manifests if m["kind"] == "RoleBinding"]
    assert {m["subjects"][0]["namespace"] for m in bindings} == {"dsd-system"}


def test_the_operator_is_told_of_the_chosen_namespaces() -> None:
    entries = {entry["name"]: entry.get("value") for entry in _container(TEAMS)["env"]}
    given = {name: entries[variable(name)] for name in ("watch_namespaces", "workers", "resync_seconds")}
    settings = Settings.model_validate({"runtime_image": "x", "namespace": "x", "service_account": "x", **given})
    assert settings.watch_namespaces == ("team-a", "team-b")
    assert variable("watch_namespaces") not in {entry["name"] for entry in _container()["env"]}


def test_the_defaults_are_those_of_the_operator() -> None:
    entries = {entry["name"]: entry.get("value") for entry in _container()["env"]}
    for name in ("workers", "resync_seconds", "log_format"):
        default = Settings.model_fields[name].default
        assert type(default)(entries[variable(name)]) == default


# The network policy


def _policy(*values: str) -> Manifest:
    return dict(_one("NetworkPolicy", "networkPolicy.enabled=true", *values)["spec"])


def test_without_being_asked_there_is_no_policy() -> None:
    assert "NetworkPolicy" not in {m["kind"] for m in _rendered()}


def test_probes_come_from_anywhere_and_scrapes_from_those_named() -> None:
    assert _policy()["ingress"] == [{"ports": [{"port": "health"}]}]
    peer = "networkPolicy.monitoring.from[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=monitoring"
    _, scrape = _policy(peer)["ingress"]
    assert scrape["ports"] == [{"port": "metrics"}]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    assert scrape["from"] == [{"namespaceSelector": selector}]


def test_the_operator_knows_its_own_pods_labels_and_who_reads_metrics() -> None:
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    value = ("--set-json", f"networkPolicy.monitoring.from={json.dumps([peer])}")
    (deployment,) = (m for m in rendered(*value) if m["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    settings = from_environment({e["name"]: e.get("value", "x") for e in container["env"]})
    assert settings.pod_labels == deployment["spec"]["selector"]["matchLabels"]
    assert settings.monitoring_peers == (peer,)
    assert variable("monitoring_peers") not in {entry["name"] for entry in _container()["env"]}


def test_the_operator_reaches_the_engines_that_it_serves() -> None:
    engines = _policy()["egress"][-1]
    assert engines["ports"] == [{"port": PORT}]
    (peer,) = engines["to"]
    assert peer["namespaceSelector"] == {}
    of_every_resource = labels(names_for("a")).items() & labels(names_for("b")).items()
    assert peer["podSelector"]["matchLabels"] == dict(of_every_resource)
    (chosen,) = _policy(TEAMS)["egress"][-1]["to"]
    (expression,) = chosen["namespaceSelector"]["matchExpressions"]
    assert expression == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a", "team-b"]}


def test_egress_can_be_left_open() -> None:
    policy = _policy("networkPolicy.egress.enabled=false")
    assert policy["policyTypes"] == ["Ingress"]
    assert "egress" not in policy


def test_the_policy_is_about_the_operators_pod() -> None:
    pod = _one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert _policy()["podSelector"]["matchLabels"].items() <= pod.items()


# Braces

ADDED: Final = {"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"release": "{{ .Release.Name }}"}}


def test_extra_objects_are_read_as_templates() -> None:
    manifests = rendered("--set-json", f"extraObjects={json.dumps([ADDED])}")
    (added,) = (m for m in manifests if m["metadata"]["name"] == "x")
    assert added["data"] == {"release": RELEASE}


def test_braces_of_legends_and_annotations_come_through_as_they_are() -> None:
    """Dashboards and rules are not templates of the chart, whatever they hold."""
    manifests = _rendered("monitoring.rules.enabled=true")
    texts = [text for m in manifests if m["kind"] == "ConfigMap" for text in m["data"].values()]
    dashboards = {path.name: path.read_text() for path in (CHART / "dashboards").glob("*.json")}
    assert sorted(texts) == sorted(dashboards.values())
    (rules,) = (m["spec"] for m in manifests if m["kind"] == "PrometheusRule")
    assert rules == yaml.safe_load((CHART / "rules" / "dsd.yaml").read_text())
    assert "{{" in str(texts)
    assert "{{" in str(rules)


# What is said after the installation


def test_the_notes_name_commands_that_fit_the_release(tmp_path: Path) -> None:
    said = notes(tmp_path)
    assert "kubectl --namespace ns rollout status deployment/a-dsd-operator" in said
    assert [line[:2] for line in said.splitlines() if line[:1].isdigit()] == ["1.", "2.", "3."]
    assert "WARNING" not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "networkPolicy.enabled=true"], "lets nobody read the operator's metrics"),
        (["--set", "crds.install=false"], "Where another release serves one of them"),
        (["--set", "crds.install=false"], "dashboards.enabled=false here"),
        (["--set", TEAMS], "--serviceaccount=ns:a-dsd-operator"),
        ([], "Engines with spec.networkPolicy.enabled let no Prometheus in"),
    ],
)
def test_the_notes_warn_of_what_is_missing(options: list[str], words: str, tmp_path: Path) -> None:
    assert words in notes(tmp_path, *options)


def test_a_complete_second_release_is_not_warned(tmp_path: Path) -> None:
    values = f"crds.install=false,dashboards.enabled=false,{TEAMS}"
    assert "WARNING" not in notes(tmp_path, "--set", values)
