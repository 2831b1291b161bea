"""Dropping packets to one pod, inside that pod's own network namespace on this machine.

A NetworkPolicy would need a plugin that enforces it; a rule in the pod's namespace does the same and ends with the pod.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.testbed.kube import Json


def process_of(pod: Json) -> int | None:
    """A process of `pod` on this machine; None when it runs elsewhere."""
    return next(processes_of(pod), None)


def processes_of(pod: Json) -> Iterator[int]:
    """The processes of `pod` on this machine, found by the pod's UID in their cgroup paths."""
    uid = pod["metadata"]["uid"]
    pattern = re.compile(f"pod({re.escape(uid)}|{re.escape(uid.replace('-', '_'))})")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and pattern.search(_cgroups(entry)):
            yield int(entry.name)


def _cgroups(process: Path) -> str:
    try:
        return (process / "cgroup").read_text()
    except OSError:  # it ended meanwhile
        return ""


@contextmanager
def dropped(pod: Json, source: str) -> Iterator[None]:
    """Drop every TCP packet that `source` (an address) sends to `pod`, until the block ends."""
    pid = process_of(pod)
    if pid is None:
        raise LookupError(f"pod {pod['metadata']['name']} does not run on this machine")
    rule = ["INPUT", "-s", source, "-p", "tcp", "-j", "DROP"]
    _iptables(pid, "-I", rule)
    try:
        yield
    finally:
        _iptables(pid, "-D", rule)


def _iptables(pid: int, action: str, rule: list[str]) -> None:
    command = ["nsenter", "--target", str(pid), "--net", "iptables", "--wait", "5", action, *rule]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
