"""The processes of a pod where it runs on this machine: to look into its namespaces, or to let its engine hang."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
        if entry.name.isdigit() and pattern.search(_content(entry / "cgroup")):
            yield int(entry.name)


@contextmanager
def hanging(pod: Json) -> Iterator[None]:
    """Stop the engine's processes; those that are still there when the block ends go on."""
    stopped = [pid for pid in processes_of(pod) if "vllm" in _content(Path(f"/proc/{pid}/cmdline"))]
    if not stopped:
        raise LookupError(f"no engine of pod {pod['metadata']['name']} runs on this machine")
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _content(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:  # the process ended meanwhile
        return ""
