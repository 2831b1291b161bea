"""Find uv, or install the pinned one into the cache."""

import shutil
import sys
from pathlib import Path

from tools.cluster import locks, paths, shell
from tools.cluster.console import step

_ELF = b"\x7fELF"
_LOCK = paths.REPOSITORY / "requirements" / "uv.txt"


def is_program(path: Path) -> bool:
    """Whether this is the program itself: a version manager's script of that name would not run inside an image."""
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def ensure() -> Path:
    """The path of a uv that can be mounted into an image."""
    found = shutil.which("uv")
    if found and is_program(Path(found).resolve()):
        return Path(found).resolve()
    own = paths.cache_root() / "uv"
    if not (own / "bin" / "uv").exists():
        with locks.locked(own.with_suffix(".lock"), "installing uv"):
            if not (own / "bin" / "uv").exists():
                _install(own)
    return own / "bin" / "uv"


def _install(own: Path) -> None:
    """Into a directory beside ``own``, renamed at the end: a half-made one is never used."""
    staged = own.with_name(".uv-new")
    shutil.rmtree(staged, ignore_errors=True)
    with step("installing uv"):
        shell.run([sys.executable, "-m", "venv", staged])
        shell.run([staged / "bin" / "python", "-m", "pip", "install", "-q", "--require-hashes", "-r", _LOCK])
    shutil.rmtree(own, ignore_errors=True)
    staged.rename(own)


def cache_directory(uv: Path) -> Path:
    """Where uv keeps downloads; shared with the machine's other uses of it."""
    directory = Path(shell.run([uv, "cache", "dir"]).strip())
    directory.mkdir(parents=True, exist_ok=True)
    return directory
