"""Build the pinned tools from their Go modules into the cache, each once per version, module files and flags."""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.cluster import locks, paths, shell
from tools.cluster.console import step
from tools.cluster.errors import ClusterError
from tools.cluster.versions import Tool

_BUILD_SECONDS = 3600
# No cgo: static programs, no C compiler needed, and the same result on every machine.
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
_OLDEST_GO = (1, 21)  # from then on, an older Go fetches the toolchain that a module asks for
_INSTALL_GO = "Install Go 1.26 or newer (1.21 does, where it may fetch the newer toolchain), then run this again."
_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath")


def module_directory(tool: Tool) -> Path:
    """Where the module of a tool is pinned in the repository."""
    return paths.PACKAGE / "go" / tool.module


def build_key(tool: Tool) -> str:
    """Ten hexadecimal digits that change with anything that goes into the binary but Go itself."""
    digest = hashlib.sha256()
    for file in sorted(module_directory(tool).iterdir()):
        digest.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    digest.update("\0".join((*_FLAGS, tool.ldflags, tool.package, repr(sorted(_ENVIRONMENT.items())))).encode())
    return digest.hexdigest()[:10]


def binary(tool: Tool) -> Path:
    """Where the built tool is, or will be."""
    return paths.binaries_root() / f"{tool.name}-{tool.version}-{build_key(tool)}" / tool.name


def go() -> str:
    """The Go command. Raises ClusterError where there is none, or one that is too old."""
    found = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if found is None:
        raise ClusterError(f"Go is not on the PATH. {_INSTALL_GO}")
    version = shell.run([found, "env", "GOVERSION"], cwd=Path("/")).strip()
    if too_old(version):
        raise ClusterError(f"{found} is {version}, which cannot read the module files. {_INSTALL_GO}")
    return found


def too_old(version: str) -> bool:
    """Whether this Go (``go1.19.8``) neither reads today's module files nor fetches the toolchain they ask for."""
    numbers = re.match(r"go(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < _OLDEST_GO


def _build(tool: Tool, destination: Path) -> None:
    """Build into a temporary directory beside the destination and rename: a half-written build is never seen."""
    root, prefix = destination.parent.parent, f".{tool.name}-"
    for abandoned in root.glob(f"{prefix}*"):  # of builds that were killed: this one holds the lock
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=root) as temporary:
        staged = Path(temporary) / "built"
        options = [*_FLAGS, "-ldflags", tool.ldflags]
        command: list[str | Path] = [go(), "build", *options, "-o", staged / tool.name, tool.package]
        shell.run(command, cwd=module_directory(tool), env=_ENVIRONMENT, timeout=_BUILD_SECONDS)
        if destination.parent.exists():
            shutil.rmtree(destination.parent)
        staged.rename(destination.parent)


def ensure(tools: Sequence[Tool]) -> None:
    """Build what is missing, with progress. Raises ClusterError with the compiler's last lines if a build fails."""
    missing = [tool for tool in tools if not binary(tool).exists()]
    for number, tool in enumerate(missing, 1):
        with locks.locked(paths.binaries_root() / f".{tool.name}.lock", f"building {tool.name}"):
            if not binary(tool).exists():
                with step(f"[{number}/{len(missing)}] building {tool.name} {tool.version}"):
                    _build(tool, binary(tool))


def remove_other_builds(tools: Sequence[Tool]) -> None:
    """Delete builds of earlier versions of these tools."""
    for tool in tools:
        for directory in paths.binaries_root().glob(f"{tool.name}-[0-9]*"):
            if directory != binary(tool).parent:
                shutil.rmtree(directory, ignore_errors=True)
