"""A real Prometheus finds and scrapes operator and engines: by the documentation's plain configuration, and by what the
real Prometheus operator makes of PodMonitor, ServiceMonitor and PrometheusRule. And every runbook's commands run.
"""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chart import rendered
from tests.docs.blocks import Block, blocks
from tests.docs.session import Session
from tests.e2e.fleet import PROMPTS
from tools.cluster.api import full_node_kubeconfig, program
from tools.cluster.paths import REPOSITORY
from tools.cluster.versions import PROMETHEUS
from tools.monitoring import server
from tools.monitoring.query import Prometheus
from tools.monitoring.scrape import documented
from tools.prometheus_operator import crds, operator
from tools.testbed.handle import CHANGE_TIMEOUT, Handle, identity
from tools.testbed.install import CHART, RELEASE, Installation
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.e2e

PAGE: Final = REPOSITORY / "docs" / "how-to" / "monitoring.md"
RUNBOOKS: Final = sorted((REPOSITORY / "docs" / "runbooks").glob("DSD*.md"))
RULES: Final = CHART / "rules" / "dsd.yaml"
OBJECT: Final = "e2e"
SECOND: Final = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}

Config = dict[str, Any]


def test_the_plain_configuration_finds_operator_and_engines(shared: Handle, tmp_path: Path) -> None:
    jobs = documented(full_node_kubeconfig())
    jobs.append({**jobs[1], "job_name": "honoured", "honor_labels": True})
    rules = shutil.copy(RULES, tmp_path)
    with prometheus(tmp_path, {"scrape_configs": jobs, "global": SECOND, "rule_files": [rules]}) as found:
        sees(found, shared, "dsd-engines", "dsd-operator")
        records_what_the_engine_does(found, shared)
        of_both_jobs = [labels_without_job(found, job) for job in ("dsd-operator", "honoured")]
        assert of_both_jobs[0]
        assert of_both_jobs[0] == of_both_jobs[1], "honoring labels makes no difference"
        assert not {name for labels in of_both_jobs[0] for name, _ in labels if name.startswith("exported_")}


def test_the_prometheus_operator_makes_the_same_of_our_monitors(
    shared: Handle, installation: Installation, tmp_path: Path
) -> None:
    before = shared.pod()
    place, system = shared.namespace, installation.namespace
    with prometheus_operator(shared, system, tmp_path):
        shared.patch({"monitoring": {"podMonitor": {"enabled": True, "interval": "1s"}}})
        jobs = (f"podMonitor/{place}/{shared.name}/0", f"serviceMonitor/{system}/{RELEASE}/0")
        config = operator.wait_for_jobs(shared.kube, place, OBJECT, *jobs)
        files = wait_for("the rules", lambda: operator.rules(shared.kube, place, OBJECT), bool, CHANGE_TIMEOUT)
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        outside = operator.from_outside(config, full_node_kubeconfig(), [tmp_path / name for name in files])
        with prometheus(tmp_path, outside) as found:
            sees(found, shared, *jobs)
            records_what_the_engine_does(found, shared)
        run(tmp_path, [block for block in blocks(PAGE) if block.level == this_file()])
        shared.wait_ready()
        shared.patch({"monitoring": {"podMonitor": {"enabled": False}}})
        wait_for("the PodMonitor to go", lambda: shared.children("PodMonitor"), lambda m: not m, CHANGE_TIMEOUT)
    assert identity(shared.pod()) == identity(before), "no pod was touched"


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_commands_of_a_runbook(page: Path, shared: Handle, tmp_path: Path) -> None:
    """The commands of docs/runbooks, on an engine that is well: they say so, and what they change is put back."""
    spec = shared.resource()["spec"]
    try:
        run(tmp_path, [b for b in blocks(page) if b.level == this_file()], NAMESPACE=shared.namespace, NAME=shared.name)
    finally:
        shared.patch({"schedule": spec["schedule"], "smoothing": spec.get("smoothing")})
    shared.wait_ready()


def run(folder: Path, page: list[Block], **variables: str) -> None:
    """Run these blocks of a page in one shell, with these variables."""
    assert page, "there is no command in the page"
    (place := folder / "shell").mkdir()
    prelude = "\n".join(f"{name}={value}" for name, value in variables.items())
    Session(place, full_node_kubeconfig(), prelude=prelude).run(page)


def this_file() -> str:
    """As the pages name it: "runbooks" and monitoring.md."""
    return str(Path(__file__).relative_to(REPOSITORY))


def prometheus(folder: Path, config: Config) -> AbstractContextManager[Prometheus]:
    """The Prometheus that is built here: Debian's leaves the discovery in Kubernetes out."""
    return server.running(folder / "prometheus", config, program=program(PROMETHEUS.name))


@contextmanager
def prometheus_operator(shared: Handle, system: str, folder: Path) -> Iterator[None]:
    """The real operator, with a Prometheus object of ours and the chart's monitor and rules; all of it gone after."""
    kubeconfig = full_node_kubeconfig()
    crds.install(kubeconfig)
    try:
        for manifest in (operator.prometheus_object(shared.namespace, OBJECT), *of_the_chart(system)):
            shared.kube.apply(manifest)
        with operator.running(kubeconfig, [shared.namespace, system], folder / "prometheus-operator.log"):
            yield
    finally:
        crds.remove(kubeconfig)
        for kind, name in (("StatefulSet", f"prometheus-{OBJECT}"), ("Service", "prometheus-operated")):
            shared.kube.delete(kind, shared.namespace, name)


def of_the_chart(namespace: str) -> list[Any]:
    """The chart's ServiceMonitor and PrometheusRule."""
    sets = ("--set", "monitoring.serviceMonitor.enabled=true,monitoring.rules.enabled=true")
    manifests = rendered(*sets, release=RELEASE, namespace=namespace)
    return [manifest for manifest in manifests if manifest["apiVersion"].startswith("monitoring.coreos.com/")]


def sees(found: Prometheus, shared: Handle, engines: str, operators: str) -> None:
    """Both jobs have a target that is up, and its series name the resource."""
    wait_for("both jobs to be up", found.targets, lambda t: {engines, operators} <= jobs_up(t, shared), CHANGE_TIMEOUT)
    where = f'dsd_namespace="{shared.namespace}", dsd_name="{shared.name}"'
    joined = (
        f'group by (dsd_namespace, dsd_name) (dsd_operator_condition{{type="Ready", {where}}}) '
        f'and on (dsd_namespace, dsd_name) dsd_plugin_info{{mode="on", {where}, '
        f'pod="{shared.pod()["metadata"]["name"]}"}}'
    )
    wait_for("a join of operator and engine", lambda: found.instant(joined), bool, CHANGE_TIMEOUT)


def jobs_up(targets: list[dict[str, Any]], shared: Handle) -> set[str]:
    """The scrape pools with a target that is up; of the engines', that of the shared one."""
    up = [target for target in targets if target["health"] == "up"]
    return {t["scrapePool"] for t in up if t["labels"].get("dsd_name", shared.name) == shared.name}


def records_what_the_engine_does(found: Prometheus, shared: Handle) -> None:
    """Rules are loaded and evaluated without an error, and their series follow the engine; no alert fires."""
    wait_for("the rules", found.rule_groups, lambda groups: set(healths(groups)) == {"ok"}, CHANGE_TIMEOUT)
    names = {rule["name"] for group in found.rule_groups() for rule in group["rules"] if rule["type"] == "alerting"}
    assert names == {page.stem for page in RUNBOOKS}
    tokens = f'deployment:dsd_emitted_tokens:rate5m{{dsd_name="{shared.name}"}} > 0'

    def answers() -> list[Any]:
        shared.engine().complete(PROMPTS[0], 8)
        return list(found.instant(tokens))

    wait_for("recorded tokens per second", answers, bool, CHANGE_TIMEOUT, 0.5)
    assert [alert for alert in found.alerts() if alert["state"] == "firing"] == []


def healths(groups: list[dict[str, Any]]) -> Iterator[str]:
    """Of every rule: ok once it was evaluated."""
    yield from (rule["health"] for group in groups for rule in group["rules"])


def labels_without_job(found: Prometheus, job: str) -> set[frozenset[tuple[str, str]]]:
    """The label sets of the operator's series about resources."""
    shown = found.instant(f'dsd_operator_condition{{job="{job}"}}')
    return {frozenset((name, value) for name, value in one.labels.items() if name != "job") for one in shown}
