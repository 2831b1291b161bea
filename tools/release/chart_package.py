"""The chart as the archive that a release carries: linted, packed, and the same bytes for the same commit."""

from pathlib import Path

from tools.cluster import gobuild, shell
from tools.cluster.versions import HELM
from tools.release.build import normalise
from tools.release.projects import CHART


def helm() -> Path:
    """The pinned helm, built when it is missing. Raises ClusterError."""
    gobuild.ensure([HELM])
    return gobuild.binary(HELM)


def lint() -> None:
    """`helm lint --strict`. Raises ClusterError with what helm says."""
    shell.run([helm(), "lint", "--strict", "--quiet", CHART])


def package(target: Path, when: int) -> Path:
    """Pack the chart into `target`. Raises ClusterError."""
    target.mkdir(parents=True, exist_ok=True)
    printed = shell.run([helm(), "package", "--destination", target, CHART])
    made = Path(printed.strip().rpartition(": ")[2])
    normalise(made, when)
    return made
