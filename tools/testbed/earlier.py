"""An earlier version of this repository, taken out of git: what tests of upgrades begin with."""

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from tools.cluster.paths import REPOSITORY

FIRST_VERSION: Final = "3e6020f63f4f46e2fc4c317f0de7868a76a5c2c4"
"""The first whole operator: schedules changed in place, from the resource to the engines. Replace it by the newest tag
once there is one."""

_SECONDS: Final = 120


def missing(commit: str = FIRST_VERSION) -> str:
    """Why the commit cannot be had here, empty where it can: a shallow clone or an archive has no history."""
    done = _git("cat-file", "-e", f"{commit}^{{commit}}")
    return "" if done.returncode == 0 else f"this checkout does not have commit {commit[:8]}, where upgrades begin"


def extract(folder: Path, commit: str = FIRST_VERSION) -> Path:
    """Write the files of `commit` into `folder`; returns it. The clone itself is not touched."""
    done = _git("archive", "--format=tar", commit)
    if done.returncode != 0:
        raise RuntimeError(f"git archive {commit}: {done.stderr.decode()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["git", "-C", REPOSITORY, *arguments], capture_output=True, check=False, timeout=_SECONDS)
