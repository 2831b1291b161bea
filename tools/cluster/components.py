"""Components: a program, its arguments and whether it is ready; started side by side, awaited in order."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.cluster.errors import ClusterError
from tools.cluster.paths import Layout
from tools.cluster.processes import Daemon, reap

# Go programs honour proxies for every address that is not loopback; the cluster's own must never go there.
ENVIRONMENT = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,10.211.0.0/16,.svc,.cluster.local")
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Component:
    """One program of a cluster. ``ready`` answers at once, whatever state the program is in."""

    name: str
    command: Sequence[str | Path]
    ready: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 90


def daemon(layout: Layout, name: str) -> Daemon:
    """The background process of a component."""
    return Daemon(name, layout.processes / f"{name}.json", layout.logs / f"{name}.log")


def known(layout: Layout) -> list[Daemon]:
    """The components that have a record, running or not."""
    return [daemon(layout, record.stem) for record in sorted(layout.processes.glob("*.json"))]


def start(layout: Layout, *wanted: Component) -> list[str]:
    """Start those that do not run, wait until all are ready, and return the names of those started.

    Raises ComponentError for the first that ends or does not become ready in time.
    """
    started = []
    for component in wanted:
        one = daemon(layout, component.name)
        if not one.running():
            one.start(component.command, {**ENVIRONMENT, **component.environment})
            started.append(component.name)
    for component in wanted:
        _await_ready(daemon(layout, component.name), component)
    for component in wanted:
        # Something else may have answered on a port that ours did not get.
        if not daemon(layout, component.name).running():
            raise ComponentError(daemon(layout, component.name), "ended")
    return started


def _await_ready(one: Daemon, component: Component) -> None:
    deadline = time.monotonic() + component.seconds
    while not component.ready():
        reap()
        if not one.running():
            raise ComponentError(one, "ended")
        if time.monotonic() >= deadline:
            raise ComponentError(one, f"did not become ready within {component.seconds:.0f} s")
        time.sleep(_POLL_SECONDS)


class ComponentError(ClusterError):
    """A component that did not start, with the end of its log."""

    def __init__(self, one: Daemon, problem: str) -> None:
        self._log_end = one.last_lines()
        super().__init__(f"{one.name} {problem}. The end of its log:\n{self._log_end}\nThe whole log: {one.log}")

    @property
    def lost_race_for_port(self) -> bool:
        """Whether somebody else took the component's port between the look and the use."""
        return "address already in use" in self._log_end
