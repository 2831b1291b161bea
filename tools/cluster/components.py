"""Starting one component and waiting until it answers, or saying why it does not."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.cluster.errors import ClusterError
from tools.cluster.paths import Layout
from tools.cluster.processes import Daemon, reap

# Go programs honour proxies for every address that is not loopback; the cluster's own must never go there.
ENVIRONMENT = {"NO_PROXY": "localhost,127.0.0.1,10.211.0.0/16,.svc,.cluster.local", "no_proxy": "10.211.0.0/16"}


def daemon(layout: Layout, name: str) -> Daemon:
    """The background process of a component."""
    return Daemon(name, layout.processes / f"{name}.json", layout.logs / f"{name}.log")


def start(
    layout: Layout, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Daemon:
    """Start a component; it may not answer yet."""
    one = daemon(layout, name)
    one.start(command, {**ENVIRONMENT, **(env or {})}, cwd)
    return one


def await_ready(one: Daemon, ready: Callable[[], bool], seconds: float) -> None:
    """Wait until ``ready`` holds. Raises ClusterError with the end of the log if the process ends or time runs out."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not one.running():
            reap()
            raise ComponentError(one, "ended")
        if time.monotonic() >= deadline:
            raise ComponentError(one, f"did not become ready within {seconds:.0f} s")
        time.sleep(0.05)


class ComponentError(ClusterError):
    """A component that did not start, with the end of its log."""

    def __init__(self, one: Daemon, problem: str) -> None:
        self.log_end = one.last_lines()
        super().__init__(f"{one.name} {problem}. The end of its log:\n{self.log_end}\nThe whole log: {one.log}")

    @property
    def lost_race_for_port(self) -> bool:
        """Whether somebody else took the component's port between the look and the use."""
        return "address already in use" in self.log_end


def known(layout: Layout) -> list[Daemon]:
    """The components that have a record, running or not."""
    return [daemon(layout, record.stem) for record in sorted(layout.processes.glob("*.json"))]
