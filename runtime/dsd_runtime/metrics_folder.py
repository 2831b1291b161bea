"""The folder through which engine cores hand their metrics to the API servers (PROMETHEUS_MULTIPROC_DIR).

It must exist and hold nothing of an earlier run, whose counters would be added to ours. Nobody can remove it at the
end, since `serve` becomes vLLM; so where the user names none, starts take turns in a few numbered folders. A lock says
which are taken: it goes through exec, and the kernel lets it go with the server's first process, however that ends
(what vLLM spawns does not inherit it).
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dsd_runtime.multiproc import MULTIPROC_DIR
from dsd_runtime.usage import UsageError

LOCK_NAME: Final = "lock"


def prepare(environment: Mapping[str, str]) -> str:
    """Make the folder, wipe what an earlier run left in it, and answer its path. Raises UsageError."""
    named = environment.get(MULTIPROC_DIR)
    try:
        folder = Path(named) if named else free_folder(private_folder())
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*folder.glob("*.db"), *folder.glob("*.partial")):
            old.unlink()
    except OSError as error:
        text = f"{MULTIPROC_DIR}={named}: {error.strerror}" if named else f"no folder for the metrics: {error.strerror}"
        raise UsageError(text if named else f"{text}; name one with {MULTIPROC_DIR}") from error
    return str(folder)


def private_folder() -> Path:
    """A folder of this user alone among the temporary files; raises OSError."""
    folder = Path(tempfile.gettempdir()) / f"dsd-serve-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        # Its name can be guessed, so somebody else may have been there first.
        return Path(tempfile.mkdtemp(prefix="dsd-serve-"))
    return folder


def free_folder(parent: Path) -> Path:
    """The first numbered folder in `parent` that no running server has, taken for this process and what it becomes."""
    number = 0
    while True:
        folder = parent / str(number)
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            number += 1
            continue
        os.set_inheritable(lock, True)  # held from now on, also by vLLM after exec
        return folder
