"""Releases of the chart on an API server of their own: helm, kubectl, and the operator as a release would run it."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.chart import CHART
from tools.cluster.api import program
from tools.testbed import login
from tools.testbed.crd import wait_established

CRD: Final = "dsddeployments.dsd-operator.io"
_SECONDS: Final = 120
_PREFIX: Final = "DSD_OPERATOR_"


@dataclass(frozen=True)
class Commands:
    """helm and kubectl on one cluster, as the administrator."""

    kubeconfig: Path

    def run(self, tool: str, *arguments: str | Path, given: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a tool; its status is for the caller to judge."""
        command = [program(tool), "--kubeconfig", self.kubeconfig, *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=_SECONDS)

    def ok(self, tool: str, *arguments: str | Path, given: str | None = None) -> str:
        """What a tool printed; it must succeed."""
        done = self.run(tool, *arguments, given=given)
        assert done.returncode == 0, f"{tool} {' '.join(map(str, arguments))}: {done.stderr}"
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """`kubectl get` as the objects it answers."""
        return json.loads(self.ok("kubectl", "get", *arguments, "-o", "json"))


@dataclass(frozen=True)
class Release:
    """A release by its name and namespace."""

    commands: Commands
    name: str
    namespace: str

    @property
    def fullname(self) -> str:
        """The name of its objects."""
        return f"{self.name}-dsd-operator"

    def try_install(self, *options: str | Path, chart: Path = CHART) -> "subprocess.CompletedProcess[str]":
        """`helm upgrade --install`; its status is for the caller to judge."""
        where = ["--namespace", self.namespace, "--create-namespace"]
        return self.commands.run("helm", "upgrade", "--install", self.name, chart, *where, *options)

    def install(self, *options: str | Path, chart: Path = CHART) -> str:
        """Install or upgrade it; returns what helm printed, the notes among it."""
        done = self.try_install(*options, chart=chart)
        assert done.returncode == 0, done.stderr
        wait_established(self.commands.kubeconfig, CRD)
        return done.stdout

    def uninstall(self) -> None:
        """Remove it if it is there."""
        self.commands.ok("helm", "uninstall", self.name, "--namespace", self.namespace, "--ignore-not-found")

    def settings(self) -> Mapping[str, str]:
        """The operator's settings as its Deployment would give them, without `DSD_OPERATOR_`."""
        pod = self.commands.get("deployment", self.fullname, "--namespace", self.namespace)["spec"]["template"]["spec"]
        fields = {"metadata.namespace": self.namespace, "spec.serviceAccountName": pod["serviceAccountName"]}
        (container,) = pod["containers"]
        return {
            entry["name"].removeprefix(_PREFIX): entry.get("value")
            or fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
            for entry in container["env"]
        }

    @property
    def user(self) -> str:
        """The operator's name on the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.settings()['SERVICE_ACCOUNT']}"

    def log_in(self, path: Path) -> Path:
        """Write a kubeconfig with a token of the release's ServiceAccount and nothing else."""
        return login.log_in(self.commands.kubeconfig, self.namespace, self.settings()["SERVICE_ACCOUNT"], path)
