"""Clean virtualenvs with nothing but one of our wheels and what its metadata asks for, at the versions of the lock."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.cluster import shell, uv
from tools.cluster.paths import REPOSITORY
from tools.release.projects import Project

_LOCK: Final = REPOSITORY / "requirements" / "dev.txt"

_IMPORT_ALL: Final = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
names = [m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    if not name.endswith(".__main__"):
        importlib.import_module(name)
assert "site-packages" in package.__file__, package.__file__
print(len(names))
"""


def make(project: Project, wheels: Path, home: Path) -> Path:
    """A virtualenv at `home` with this project's wheel; our other wheels come from the folder `wheels`.

    uv resolves anew from the wheels' metadata: what they fail to ask for is missing. Raises ClusterError.
    """
    program, python = uv.ensure(), home / "bin" / "python"
    shell.run([program, "venv", "-q", "--no-config", "--python", sys.executable, home])
    command: list[str | Path] = [
        program,
        "pip",
        "install",
        "-q",
        "--no-config",
        "--python",
        python,
        "--constraints",
        _LOCK,
    ]
    shell.run([*command, "--find-links", wheels, "--no-build", _wheel(project, wheels)])
    shell.run([program, "pip", "check", "-q", "--python", python])
    return home


def make_from_lock(lock: Path, projects: Sequence[Project], wheels: Path, home: Path) -> Path:
    """A virtualenv at `home` with a lock's packages and our wheels, as the Dockerfile installs them: without resolving.

    Raises ClusterError.
    """
    program, python = uv.ensure(), home / "bin" / "python"
    shell.run([program, "venv", "-q", "--no-config", "--python", sys.executable, home])
    command: list[str | Path] = [program, "pip", "install", "-q", "--no-config", "--python", python, "--no-deps"]
    shell.run([*command, "--require-hashes", "-r", lock])
    shell.run([*command, *[_wheel(project, wheels) for project in projects]])
    return home


def _wheel(project: Project, wheels: Path) -> Path:
    (found,) = wheels.glob(f"{project.stem}-*.whl")
    return found


def run(home: Path, command: Sequence[str]) -> str:
    """What a command of that virtualenv prints, away from the checkout and its settings. Raises ClusterError."""
    kept = {name: "" for name in os.environ if name.startswith(("PYTHON", "DSD_", "VIRTUAL_ENV", "KUBECONFIG"))}
    return shell.run([home / "bin" / command[0], *command[1:]], cwd=home, env={**kept, "HOME": str(home)})


def import_all(project: Project, home: Path) -> int:
    """Import every module of the installed package; returns how many there are. Raises ClusterError."""
    return int(run(home, ["python", "-I", "-c", _IMPORT_ALL, Path(project.package).name]))
