"""Mount points of this machine, read from the kernel."""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import shell

_ESCAPE = re.compile(r"\\(\d{3})")


@dataclass(frozen=True)
class Mount:
    """One mount: where, and the type of its file system."""

    point: Path
    kind: str


def parse(mountinfo: str) -> list[Mount]:
    """Mounts from the text of ``/proc/self/mountinfo``, in the order they were made."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), before.split()[4])
        found.append(Mount(Path(point), after.split()[0]))
    return found


def current() -> list[Mount]:
    """All mounts this process sees."""
    return parse(Path("/proc/self/mountinfo").read_text())


def unmount_below(directory: Path) -> None:
    """Unmount everything below a directory, the latest first; what is busy is detached."""
    for mount in reversed([one for one in current() if one.point.is_relative_to(directory)]):
        if not shell.succeeds(["umount", mount.point]):
            shell.succeeds(["umount", "--lazy", mount.point])
