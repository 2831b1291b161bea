"""Builds wheels and source distributions so that the same commit gives the same bytes, by uv and setuptools.

setuptools stamps a wheel's files with SOURCE_DATE_EPOCH, but a source distribution with the time and the user of the
build; those, and the chart's archive, are written anew with the stamps that the wheel has.
"""

import gzip
import io
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Final

from tools.cluster import shell, uv
from tools.cluster.paths import REPOSITORY

_FIRST_ZIP_DATE: Final = 315532800
"""1980-01-01: an archive of the zip format, which a wheel is, knows no earlier time."""


def epoch(root: Path = REPOSITORY) -> int:
    """The time of the last commit, in seconds since 1970: SOURCE_DATE_EPOCH of everything that is built."""
    git = ["git", "-c", f"safe.directory={root.resolve()}"]
    return max(_FIRST_ZIP_DATE, int(shell.run([*git, "log", "-1", "--format=%ct"], cwd=root)))


def _uv_build(source: Path, kind: str, target: Path, when: int, *options: str | Path) -> Path:
    """Build one distribution of `source` (a folder, or an archive) into `target`."""
    before = set(target.glob("*")) if target.exists() else set()
    command: list[str | Path] = [
        uv.ensure(),
        "build",
        "-q",
        "--no-config",
        "--no-create-gitignore",
        kind,
        "--out-dir",
        target,
        *options,
    ]
    shell.run([*command, source], env={"SOURCE_DATE_EPOCH": str(when), "PYTHONHASHSEED": "0"})
    (made,) = set(target.glob("*")) - before
    return made


def _here() -> list[str | Path]:
    """Build with setuptools of this virtualenv, which the lock pins."""
    return ["--no-build-isolation", "--offline", "--python", sys.executable]


def wheel(source: Path, target: Path, when: int) -> Path:
    """The wheel of a folder or of a source distribution. Raises ClusterError."""
    return _uv_build(source, "--wheel", target, when, *_here())


def wheel_in_isolation(source: Path, target: Path, when: int) -> Path:
    """The wheel as somebody's pip builds it: in an environment with nothing but what pyproject.toml asks for, at the
    versions of the lock. Raises ClusterError."""
    lock = REPOSITORY / "requirements" / "build.txt"
    options: list[str | Path] = ["--build-constraints", lock, "--require-hashes", "--python", sys.executable]
    return _uv_build(source, "--wheel", target, when, *options)


def sdist(source: Path, target: Path, when: int) -> Path:
    """The source distribution of a folder. Raises ClusterError."""
    made = _uv_build(source, "--sdist", target, when, *_here())
    normalise(made, when)
    return made


def normalise(archive: Path, when: int) -> None:
    """Write a .tar.gz anew: sorted, nobody's, everything of the time `when`."""
    with tarfile.open(archive) as packed:
        members = [(member, packed.extractfile(member)) for member in packed.getmembers()]
        files = [(member, b"" if file is None else file.read()) for member, file in members]
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as written:
        for member, content in sorted(files, key=lambda pair: pair[0].name):
            written.addfile(_anonymous(member, when), io.BytesIO(content))
    with archive.open("wb") as target, gzip.GzipFile("", "wb", 9, target, mtime=when) as packed_again:
        packed_again.write(plain.getvalue())


def _anonymous(member: tarfile.TarInfo, when: int) -> tarfile.TarInfo:
    """A member without what tells of the machine that packed it."""
    clean = tarfile.TarInfo(member.name)
    clean.type, clean.size, clean.linkname = member.type, member.size, member.linkname
    clean.mtime, clean.mode = when, 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return clean


def build(source: Path, target: Path, scratch: Path, when: int) -> tuple[Path, Path]:
    """Wheel and source distribution of a project, each from a copy of its own. Raises ClusterError."""
    copies = [shutil.copytree(source, scratch / kind) for kind in ("wheel", "sdist")]
    return wheel(copies[0], target, when), sdist(copies[1], target, when)
