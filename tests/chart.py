"""helm on the chart without a cluster: what it renders, and what it refuses."""

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster.api import program
from tools.cluster.paths import REPOSITORY
from tools.cluster.versions import KUBERNETES

CHART: Final = REPOSITORY / "charts" / "dsd-operator"
RELEASE: Final = "dsd-operator"
NAMESPACE: Final = "dsd-system"
HELM_SECONDS: Final = 60

Manifest = dict[str, Any]


def helm(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run helm; its status and words are for the caller to judge."""
    command = [program("helm"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HELM_SECONDS)


def template(
    *options: str | Path, release: str = RELEASE, namespace: str = NAMESPACE, chart: Path = CHART
) -> "subprocess.CompletedProcess[str]":
    """`helm template` for the version of Kubernetes that the tests run."""
    return helm("template", release, chart, "--namespace", namespace, "--kube-version", KUBERNETES, *options)


@cache
def rendered(*options: str | Path, release: str = RELEASE, namespace: str = NAMESPACE) -> Sequence[Manifest]:
    """The manifests; AssertionError with helm's words where it refuses."""
    done = template(*options, release=release, namespace=namespace)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def notes(folder: Path, *options: str) -> str:
    """What is said after an installation as `a` in `ns`; `folder` takes a copy of the chart.

    Helm renders the notes only against a cluster, so the copy renders them as a template.
    """
    copy = Path(shutil.copytree(CHART, folder / "chart"))
    (copy / "templates" / "NOTES.txt").rename(copy / "NOTES.txt")
    (copy / "templates" / "notes.yaml").write_text('notes: {{ tpl (.Files.Get "NOTES.txt") . | quote }}')
    done = template(*options, "-s", "templates/notes.yaml", release="a", namespace="ns", chart=copy)
    assert done.returncode == 0, done.stderr
    return str(yaml.safe_load(done.stdout)["notes"])
