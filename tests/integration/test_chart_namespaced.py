"""A release that serves chosen namespaces: the real operator with the token of the chart's own ServiceAccount.

The API server's audit log says of each request whether it was allowed: the operator must work in its namespaces, and
must not even ask for anything else. The commands are those of charts/dsd-operator/README.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chart import CHART
from tests.integration import every_right
from tests.integration.operator_process import OperatorProcess
from tests.integration.releases import Commands, Release
from tests.integration.world import FIRST, SECOND, SECONDS, THIRD, World
from tools.cluster.api import ApiOnlyCluster
from tools.generate_rbac import Right, documented, rights
from tools.prometheus_operator import crds
from tools.testbed.kube import Kube
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

SERVED: Final = "team-a"
SERVED_TOO: Final = "team-b"
OTHER: Final = "team-c"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ApiOnlyCluster]:
    """An API server that writes down who asked for what."""
    with ApiOnlyCluster(audit=True) as running:
        yield running


@pytest.fixture(scope="module")
def release(cluster: ApiOnlyCluster) -> Release:
    """Installed for two namespaces out of three, where the Prometheus operator's kinds are known."""
    commands = Commands(cluster.kubeconfig)
    crds.install(cluster.kubeconfig, ["podmonitors"])
    for namespace in (SERVED, SERVED_TOO, OTHER):
        commands.ok("kubectl", "create", "namespace", namespace)
    made = Release(commands, "apart", "dsd-system")
    made.install("--set", f"watchNamespaces={{{SERVED},{SERVED_TOO}}}")
    return made


@pytest.fixture(scope="module")
def world(cluster: ApiOnlyCluster, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The first namespace that is served; its operators log in as the release's ServiceAccount."""
    folder = tmp_path_factory.mktemp("operator")
    login = release.log_in(folder / "kubeconfig")
    with World(Kube(cluster.kubeconfig), cluster.kubeconfig, login, SERVED, folder) as made:
        yield made


def test_it_works_where_it_may_and_asks_for_nothing_else(
    cluster: ApiOnlyCluster, release: Release, world: World, tmp_path: Path
) -> None:
    operator = world.operator(**release.settings())
    every_right.use(world, cluster.kubeconfig, tmp_path / "controller")
    assert operator.terminate() == 0
    events = cluster.audit(release.user)
    assert len(events) > 20
    assert _refused(events) == []
    objects = [event["objectRef"] for event in events if "resource" in event.get("objectRef", {})]
    assert {thing["namespace"] for thing in objects} == {SERVED, SERVED_TOO, release.namespace}
    own = {(t["resource"], t.get("subresource"), t["name"]) for t in objects if t["namespace"] == release.namespace}
    assert own == {("serviceaccounts", "token", release.fullname)}
    assert "secrets" not in {thing["resource"] for thing in objects}


def test_every_right_that_it_has_is_used(cluster: ApiOnlyCluster, release: Release) -> None:
    """After the test above, which uses all. An apply that makes an object is asked for as patch, and needs create."""
    objects = [e["objectRef"] | {"verb": e["verb"]} for e in cluster.audit(release.user) if "objectRef" in e]
    used = {Right(t.get("apiGroup", ""), _resource(t), t["verb"]) for t in objects if "resource" in t}
    used |= {Right(right.group, right.resource, "create") for right in used if right.verb == "patch"}
    ours = f"app.kubernetes.io/instance={release.name}"
    (role,) = release.commands.get("role", "--namespace", SERVED, "-l", ours)["items"]
    granted = set(rights(role["rules"]))
    assert granted == documented(), "docs/reference/rbac.md lists them"
    assert granted - used == set()


def test_it_has_no_rights_in_the_cluster(release: Release) -> None:
    made = release.commands.get("clusterrole,clusterrolebinding", "-l", "app.kubernetes.io/name=dsd-operator")
    assert made["items"] == []


def test_another_namespace_is_not_touched(release: Release, world: World) -> None:
    found = world.resource()
    copy = {"metadata": {"name": "demo", "namespace": OTHER}, "spec": found["spec"]}
    world.kube.apply({**copy, "apiVersion": found["apiVersion"], "kind": found["kind"]})
    _serve_a_change(world, world.operator(**release.settings()))
    assert "status" not in (world.kube.get("DSDDeployment", OTHER, "demo") or {})
    assert world.kube.get("Deployment", OTHER, "demo") is None


def test_a_namespace_that_lost_its_role_holds_up_no_other(release: Release, world: World) -> None:
    """As when it was deleted: the Role goes with it."""
    ours = ("--namespace", SERVED_TOO, "-l", f"app.kubernetes.io/instance={release.name}")
    assert "deleted" in release.commands.ok("kubectl", "delete", "rolebinding", *ours)
    operator = world.operator(**release.settings())
    _serve_a_change(world, operator)
    assert f"Namespace {SERVED_TOO} is not served" in operator.text()


def test_without_the_issuers_keys_the_file_brings_the_schedule_until_an_administrator_helps(
    release: Release, world: World
) -> None:
    """Clusters may have taken from ServiceAccounts what Kubernetes grants them; a Role cannot give it back."""
    release.commands.ok("kubectl", "delete", "clusterrolebinding", "system:service-account-issuer-discovery")
    world.kube.delete("ConfigMap", SERVED, "demo")  # it holds the keys
    operator = world.operator(**release.settings())
    config = wait_for("the file to be there again", world.config_file, lambda config: config is not None, SECONDS)
    assert config is not None
    assert config.auth is None
    assert config.ranges
    assert "Cannot read the API server's signing keys" in operator.text()
    release.commands.ok("kubectl", *_remedy(release))
    world.schedule(THIRD)
    wait_for("the keys in the file", world.config_file, lambda c: c is not None and c.auth is not None, SECONDS)
    assert operator.terminate() == 0


def _remedy(release: Release) -> list[str]:
    """The command that the chart's README gives the administrator, for this release."""
    page = (CHART / "README.md").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^kubectl (create clusterrolebinding .*)$", page, re.MULTILINE)
    account = f"{release.namespace}:{release.fullname}"
    return str(command).replace("team-a:dsd-operator", account).split()


def _serve_a_change(world: World, operator: OperatorProcess) -> None:
    """Change the schedule, see that it was worked on, and stop."""
    config = world.config_file()
    assert config is not None
    triples = [r.triple() for r in config.ranges]
    wanted = FIRST if triples != FIRST else SECOND
    world.schedule(wanted)
    world.wait_stored(wanted)
    assert operator.terminate() == 0


def _resource(reference: dict[str, Any]) -> str:
    return "/".join(part for part in (reference["resource"], reference.get("subresource")) if part)


def _refused(events: list[dict[str, Any]]) -> list[str]:
    """The requests that the API server did not allow."""
    return [
        f"{event['verb']} {event['requestURI']}: {event['responseStatus']['code']}"
        for event in events
        if event["annotations"].get("authorization.k8s.io/decision") != "allow"
        or event["responseStatus"]["code"] in (401, 403)
    ]
