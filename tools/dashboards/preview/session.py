"""Something to draw: DSDDeployments on the local node under a load that rises and falls, and a Prometheus that watches.

Two deployments serve; one cannot (its image does not exist), so that the pictures show how that looks. The schedule of
the larger one is changed in place, through the resource, while the load goes on.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dsd_runtime.schedule import Ranges, from_triples
from tools.cluster import api
from tools.cluster.console import say, step
from tools.cluster.versions import PROMETHEUS
from tools.dashboards.grafana import Window
from tools.monitoring.query import Prometheus
from tools.monitoring.scrape import documented
from tools.monitoring.server import running, scraping
from tools.testbed import manifests
from tools.testbed.engine import pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, Handle
from tools.testbed.install import install
from tools.testbed.kube import Kube
from tools.testbed.load import Load
from tools.testbed.site import site
from tools.testbed.waiting import wait_for
from tools.testbed.workload import DRAFTERS, TARGET, prompts

NAMESPACE: Final = "chat"
MAIN: Final = "llama"
REPLICAS: Final = 2
SCHEDULES: Final[tuple[Ranges, ...]] = tuple(from_triples(triples) for triples in (
    [(1, 2, 4), (3, 8, 2), (9, 16, 1)],
    [(1, 16, 0)],
    [(1, 4, 4), (5, 16, 3)],
    [(1, 4, 3), (5, 8, 2), (9, 16, 0)],
))  # fmt: skip
STREAMS: Final = (2, 6, 14, 28)
"""Clients of all replicas together, phase by phase under each schedule."""

_SCRAPE_SECONDS: Final = 2
_TOKENS: Final = 64


@contextmanager
def session(folder: Path, phase_seconds: float) -> Iterator[tuple[Prometheus, Window]]:
    """A Prometheus that has watched the whole course, and the course's time. `folder` keeps its data."""
    kube = install().kube
    with site(kube, NAMESPACE):
        main, other = _deploy(kube)
        jobs = documented(api.full_node_kubeconfig())
        program = api.program(PROMETHEUS.name)  # Debian's cannot discover pods
        with running(folder, scraping(jobs, f"{_SCRAPE_SECONDS}s"), program=program) as server:
            wait_for("all targets", server.targets, lambda found: _up(found) == REPLICAS + 2, CHANGE_TIMEOUT)
            start = time.time()
            _course(main, other, phase_seconds)
            end = time.time()
            yield server, Window(math.ceil(start), math.floor(end), _SCRAPE_SECONDS, 10 * _SCRAPE_SECONDS)


def _up(targets: list[dict[str, Any]]) -> int:
    """Targets of ours that answer: the operator and the engines; other engines of the cluster are not counted."""
    ours = [t for t in targets if t["labels"].get("dsd_namespace", NAMESPACE) == NAMESPACE]
    return sum(target["health"] == "up" for target in ours)


def _deploy(kube: Kube) -> tuple[Handle, Handle]:
    wanted = {MAIN: ("eagle", REPLICAS), "summarizer": ("ngram", 1)}
    for name, (method, replicas) in wanted.items():
        kube.apply(manifests.dsd_deployment(NAMESPACE, name, TARGET, DRAFTERS[method], SCHEDULES[0], replicas))
    broken = manifests.dsd_deployment(NAMESPACE, "llama-next", TARGET, DRAFTERS["ngram"], SCHEDULES[0])
    broken["spec"]["engine"]["image"] = "localhost/no-such-image:1"
    kube.apply(broken)
    main, other = (Handle(kube, NAMESPACE, name) for name in wanted)
    with step("starting the engines"):
        main.wait_ready()
        other.wait_ready()
    return main, other


def _course(main: Handle, other: Handle, phase_seconds: float) -> None:
    """Every schedule with every load, one after the other; the other deployment has a steady load of its own."""
    with Load(_urls(other), prompts(24), 2, _TOKENS, pause=0.1):
        for schedule in SCHEDULES:
            main.set_schedule(schedule)
            main.wait_applied(schedule)
            for streams in STREAMS:
                say(f"schedule {[tuple(r.model_dump().values()) for r in schedule]}, {streams} clients")
                with Load(_urls(main), prompts(24), streams, _TOKENS):
                    time.sleep(phase_seconds)


def _urls(handle: Handle) -> list[str]:
    return [pod_url(pod["status"]["podIP"]) for pod in handle.pods()]
