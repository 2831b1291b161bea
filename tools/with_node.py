"""Run a command with node and images ready: `python -m tools.with_node COMMAND…`.

A node that ran before (a demo, a developer's) stays; one that was started for the command is stopped after it, whatever
the command's end. What a node that was killed has left is removed first. With DSD_KUBECONFIG the existing cluster is
used and left alone.
"""

import os
import signal
import subprocess
import sys
from types import FrameType

from tools.cluster import full_node
from tools.cluster.paths import REPOSITORY


def _cluster(action: str) -> int:
    return subprocess.run([sys.executable, "-m", "tools.cluster", action], cwd=REPOSITORY, check=False).returncode


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)  # unwinds, so that the node is stopped


def run(command: list[str]) -> int:
    """The command's exit status. Where this process is to end, the command is told, and has the time to clean up."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except SystemExit:
        process.terminate()
        raise
    finally:
        process.wait()


def main(command: list[str]) -> int:
    """Returns the command's exit status, or that of the step before it that failed."""
    if not command:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, _end)
    ours = not os.environ.get("DSD_KUBECONFIG") and not full_node.runs()
    try:
        status = (_cluster("down") if ours else 0) or _cluster("up") or _cluster("images")
        return status or run(command)
    finally:
        if ours:
            _cluster("down")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
