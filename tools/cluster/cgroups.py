"""The control group that holds all pods, in version 1 (one per controller) and version 2 (one in all)."""

import os
import signal
from pathlib import Path

from tools.cluster import mounts
from tools.cluster.waiting import poll

NAME = "dsd-operator"
_KILL_SECONDS = 15


def roots() -> list[Path]:
    """Our group in every hierarchy of this machine, whether it exists or not."""
    return [mount.point / NAME for mount in mounts.current() if mount.kind in ("cgroup", "cgroup2")]


def ensure() -> None:
    """Make our group: the kubelet wants the parent of its pods to exist."""
    for group in roots():
        group.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # version 1 leaves these empty, and an empty set runs nothing
            setting = group / name
            if setting.exists() and not setting.read_text().strip() and (group.parent / name).exists():
                setting.write_text((group.parent / name).read_text())
        _delegate(group.parent)


def _delegate(parent: Path) -> None:
    """Version 2: let the groups below have every controller that the parent has."""
    controllers, delegated = parent / "cgroup.controllers", parent / "cgroup.subtree_control"
    if controllers.exists():
        missing = set(controllers.read_text().split()) - set(delegated.read_text().split())
        if missing:
            delegated.write_text(" ".join(f"+{name}" for name in sorted(missing)))


def _groups(root: Path) -> list[Path]:
    """`root` and the groups below it. Pods take theirs away meanwhile: os.walk passes those over, rglob raises."""
    return [Path(folder) for folder, _, files in os.walk(root) if "cgroup.procs" in files]


def processes() -> set[int]:
    """Processes of pods."""
    found: set[int] = set()
    for root in roots():
        for group in _groups(root):
            try:
                found.update(int(pid) for pid in (group / "cgroup.procs").read_text().split())
            except OSError:
                continue  # the group went meanwhile, or is threaded
    return found - {os.getpid()}


def kill() -> bool:
    """Kill all processes of pods; whether none is left."""

    def none_left() -> bool:
        remaining = processes()
        for pid in remaining:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not remaining

    return poll(none_left, _KILL_SECONDS)


def remove() -> None:
    """Remove our group and those below it, deepest first."""
    for root in roots():
        for group in sorted(_groups(root), key=lambda path: len(path.parts), reverse=True):
            poll(lambda group=group: _remove_one(group), 2, 0.05)  # type: ignore[misc]


def _remove_one(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # the kernel still winds down its last process
    return True
