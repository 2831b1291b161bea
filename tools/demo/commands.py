"""kubectl and helm for the demo: the pinned programs on the cluster that the demo uses, shown before they run."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.cluster import shell
from tools.cluster.api import full_node_kubeconfig, program
from tools.cluster.errors import ClusterError
from tools.cluster.paths import REPOSITORY
from tools.demo import terminal


def environment() -> dict[str, str]:
    """Variables that make kubectl and helm talk to the demo's cluster."""
    return {"KUBECONFIG": str(full_node_kubeconfig())}


def run(tool: str, *arguments: str, stdin: str | None = None, show: bool = True) -> str:
    """Run a pinned tool in the repository and return its output; raises ClusterError when it fails."""
    if show:
        terminal.shown(shlex.join([tool, *arguments]))
    command: list[str | Path] = [program(tool), *arguments]
    return shell.run(command, cwd=REPOSITORY, env=environment(), stdin=stdin, timeout=900).strip()


def kubectl(*arguments: str, stdin: str | None = None, show: bool = True) -> str:
    """Run kubectl; see `run`."""
    return run("kubectl", *arguments, stdin=stdin, show=show)


@contextmanager
def forwarded(namespace: str, target: str, port: int) -> Iterator[str]:
    """A local URL for a port of a pod or Service while the block runs, by `kubectl port-forward`."""
    command: list[str | Path] = [program("kubectl"), "--namespace", namespace, "port-forward", target, f":{port}"]
    everything = {**os.environ, **environment()}
    process = subprocess.Popen(
        command, env=everything, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    try:
        yield f"http://127.0.0.1:{_local_port(process)}"
    finally:
        process.terminate()
        process.wait(timeout=10)


def _local_port(process: "subprocess.Popen[str]") -> int:
    """The port that kubectl chose; it prints it once it listens, or an error before it ends."""
    assert process.stdout is not None, "the output is a pipe"
    line = process.stdout.readline()
    found = re.search(r"127\.0\.0\.1:(\d+)", line)
    if found is None:
        raise ClusterError(f"kubectl port-forward failed: {line}{process.stdout.read()}".strip())
    return int(found[1])
