"""Dropping packets to one pod, inside that pod's own network namespace on this machine.

A NetworkPolicy would need a plugin that enforces it; a rule in the pod's namespace does the same and ends with the pod.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tools.testbed.kube import Json
from tools.testbed.processes import process_of


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
