"""The three distributions of this repository, and the copies of their sources that they are built from."""

import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.cluster.paths import REPOSITORY
from tools.cluster.project_images import tracked_files


@dataclass(frozen=True)
class Project:
    """One distribution.

    `folder` holds its pyproject.toml; `package` and `sources` are paths in it: the package itself, and all that belongs
    to the distribution. `commands` are run in a clean environment.
    """

    name: str
    folder: str
    package: str
    sources: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]

    @property
    def stem(self) -> str:
        """How the names of its files begin."""
        return self.name.replace("-", "_")

    def pyproject(self, root: Path = REPOSITORY) -> dict[str, Any]:
        """Its table `project`."""
        table: dict[str, Any] = tomllib.loads((root / self.folder / "pyproject.toml").read_text())["project"]
        return table

    def version(self, root: Path = REPOSITORY) -> str:
        """The version in its package, read without importing it."""
        text = (root / self.folder / self.package / "__init__.py").read_text()
        found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
        return found[1] if found else ""


_COMMON: Final = ("pyproject.toml", "LICENSE", "README.md")

RUNTIME: Final = Project(
    name="dsd-runtime",
    folder="runtime",
    package="dsd_runtime",
    sources=(*_COMMON, "dsd_runtime"),
    commands=(("dsd", "--version"), ("dsd-serve", "--help")),
)
OPERATOR: Final = Project(
    name="dsd-operator",
    folder=".",
    package="operator/dsd_operator",
    sources=(*_COMMON, "operator"),
    commands=(("dsd-operator", "--version"), ("dsd-operator", "--help")),
)
KUBECTL: Final = Project(
    name="kubectl-dsd",
    folder="kubectl",
    package="kubectl_dsd",
    sources=(*_COMMON, "kubectl_dsd"),
    commands=(("kubectl-dsd", "--version"), ("kubectl-dsd", "--help")),
)
PROJECTS: Final = (RUNTIME, OPERATOR, KUBECTL)
"""In the order in which they need each other."""

CHART: Final = REPOSITORY / "charts" / "dsd-operator"


def copy_sources(project: Project, target: Path, root: Path = REPOSITORY) -> Path:
    """Lay what git knows or would add of a project at `target`. Raises ClusterError.

    Building leaves files beside the sources, and what git ignores must not get into a release.
    """
    home = root / project.folder
    for file in tracked_files(root, [str((home / name).relative_to(root)) for name in project.sources]):
        copy = target / file.relative_to(home)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        copy.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)  # whatever the user's umask
    return target
