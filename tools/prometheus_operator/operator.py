"""Runs the Prometheus operator as a process beside the cluster, and reads what it makes of monitors and rules.

Its Prometheus objects here have no replicas: the operator then writes their whole configuration, and the tests hand it
to a Prometheus of their own (`tools.monitoring`), which reaches the pods from this machine.
"""

import base64
import gzip
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import config

from tools.cluster import ports, shell
from tools.cluster.api import program
from tools.cluster.errors import ClusterError
from tools.cluster.versions import PROMETHEUS_OPERATOR
from tools.monitoring import scrape
from tools.monitoring.server import end_with_parent
from tools.testbed.kube import Json, Kube
from tools.testbed.waiting import wait_for

_SECONDS: Final = 90.0
_STOP_SECONDS: Final = 20


@contextmanager
def running(kubeconfig: Path, namespaces: Sequence[str], log: Path) -> Iterator[None]:
    """The operator, watching `namespaces`; the CRDs must be there. ClusterError when it ends by itself."""
    (port,) = ports.free_ports(1)
    command: list[str | Path] = [
        program(PROMETHEUS_OPERATOR.name),
        *_login(kubeconfig),
        f"--namespaces={','.join(namespaces)}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--kubelet-service=",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=end_with_parent)
    try:
        yield
        if process.poll() is not None:
            raise ClusterError(f"the Prometheus operator ended:\n{shell.tail(log.read_text(errors='replace'))}")
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _login(kubeconfig: Path) -> list[str]:
    """The operator reads no kubeconfig outside a cluster, but the files that one holds."""
    found = config.new_client_from_config(str(kubeconfig)).configuration
    return [
        f"--apiserver={found.host}",
        f"--ca-file={found.ssl_ca_cert}",
        f"--cert-file={found.cert_file}",
        f"--key-file={found.key_file}",
    ]


def prometheus_object(namespace: str, name: str, **selectors: Any) -> Json:
    """A Prometheus without replicas that takes every monitor and rule, unless `selectors` say otherwise."""
    everything: Json = {f"{kind}{part}": {} for kind in ("podMonitor", "serviceMonitor", "rule") for part in _SELECTORS}
    spec = {"replicas": 0, "scrapeInterval": "1s", "evaluationInterval": "1s", **everything, **selectors}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": metadata, "spec": spec}


_FILLED_IN: Final = {"SHARD": "0", "POD_NAME": "outside"}
"""What the pod's config reloader fills in."""

_SELECTORS: Final = ("Selector", "NamespaceSelector")


def configuration(kube: Kube, namespace: str, name: str) -> dict[str, Any]:
    """The prometheus.yml that the operator wrote; empty as long as it has written none."""
    secret = kube.get("Secret", namespace, f"prometheus-{name}")
    packed = ((secret or {}).get("data") or {}).get("prometheus.yaml.gz")
    if not packed:
        return {}
    text = gzip.decompress(base64.b64decode(packed)).decode()
    for variable, value in _FILLED_IN.items():
        text = text.replace(f"$({variable})", value)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def rules(kube: Kube, namespace: str, name: str) -> dict[str, str]:
    """The rule files that it wrote, by their names."""
    found = kube.get("ConfigMap", namespace, f"prometheus-{name}-rulefiles-0")
    return dict((found or {}).get("data") or {})


def wait_for_jobs(kube: Kube, namespace: str, name: str, *jobs: str) -> dict[str, Any]:
    """Wait until the configuration has scrape jobs of these names."""

    def has_all(made: dict[str, Any]) -> bool:
        return set(jobs) <= {job["job_name"] for job in made.get("scrape_configs") or ()}

    return wait_for(f"the jobs {jobs}", lambda: configuration(kube, namespace, name), has_all, _SECONDS, 0.2)


def from_outside(made: dict[str, Any], kubeconfig: Path, rule_files: Sequence[Path]) -> dict[str, Any]:
    """The same configuration for a Prometheus outside the cluster: it logs in by a kubeconfig and has its own files."""
    jobs = scrape.from_outside(made["scrape_configs"], kubeconfig)
    return {**made, "scrape_configs": jobs, "rule_files": [str(file) for file in rule_files]}
