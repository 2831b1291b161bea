"""The engines that are measured: which pods, how they are reached, what they count.

Requests go through `kubectl port-forward` on loopback to each pod (or to one address that spreads them), the counters
come from each pod. The pods must stay the same ones: another pod is another machine.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.status.pods import can_serve, engine_restarts, is_ready, name_of
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import Failure
from kubectl_dsd.forwarding import port_forward
from kubectl_dsd.profile.streams import Connection
from kubectl_dsd.top.reading import RUNNING, STEPS, WAITING, Reading, read

Identity = tuple[str, int]
"""UID of a pod and the restarts of its containers: another one is another machine with cold caches."""

EDGE_DEADLINE: Final = 2.0
"""Longest wait for the page to change; steps may take that long."""

IDLE_SECONDS: Final = 3.0
_POLL: Final = 0.05


@dataclass(frozen=True)
class Engine:
    """One pod: where completions go, how its metrics are read, and how many engine cores it has."""

    pod: str
    address: str
    cores: int
    scrape: Callable[[], str]

    def edge(self) -> Reading:
        """The counters right after the page has changed.

        The page follows the engine by up to 0.2 s, and a window whose ends are each off by that is wrong by percents.
        Right after a change the page is fresh, at both ends alike, once all of it has changed.
        """
        deadline = time.monotonic() + EDGE_DEADLINE
        before = found = self._look()
        while not (found.whole and _steps(found) != _steps(before)) and time.monotonic() < deadline:
            found = self._look()
        return found

    def _look(self) -> Reading:
        started = time.monotonic()
        text = self.scrape()
        return read(text, (started + time.monotonic()) / 2)


def _steps(reading: Reading) -> object:
    return reading.series.get(STEPS)


@dataclass(frozen=True)
class Engines:
    """All pods of the deployment, and the same ones throughout."""

    engines: Sequence[Engine]
    identities: frozenset[Identity]

    @property
    def cores(self) -> int:
        """Engine cores of all pods together."""
        return sum(engine.cores for engine in self.engines)

    @property
    def addresses(self) -> list[str]:
        """Where to send requests: an address once for each engine core."""
        return [engine.address for engine in self.engines for _ in range(engine.cores)]

    def edges(self) -> list[Reading]:
        """The edge of a window at each pod, all at the same time."""
        with ThreadPoolExecutor(len(self.engines)) as pool:
            return list(pool.map(lambda engine: engine.edge(), self.engines))

    def busy(self) -> float:
        """Requests that run or wait now."""
        readings = [read(engine.scrape(), 0.0) for engine in self.engines]
        return sum(reading.total(RUNNING) + reading.total(WAITING) for reading in readings)

    def wait_idle(self, seconds: float = IDLE_SECONDS) -> None:
        """Wait until what was ended has left the engines; not for ever, for others may use them."""
        deadline = time.monotonic() + seconds
        while self.busy() and time.monotonic() < deadline:
            time.sleep(_POLL)

    def check(self, pods: Sequence[Json]) -> None:
        """Raise Failure unless these are the same pods, none restarted."""
        if frozenset(map(identity, serving(pods))) != self.identities:
            raise Failure(
                "the pods have changed: one was replaced, restarted, added or taken away",
                "What was measured so far is void. Start again when the deployment is at rest.",
            )


def identity(pod: Json) -> Identity:
    """What changes when a pod is replaced or its engine restarted."""
    return str(pod["metadata"]["uid"]), engine_restarts(pod)


def serving(pods: Sequence[Json]) -> list[Json]:
    """Pods that count: neither ended nor being deleted."""
    return [pod for pod in pods if can_serve(pod)]


def cores_of(status: Json) -> int:
    """Engine cores of a pod."""
    return max(1, len(status.get("engines") or ()))


@contextmanager
def reach(
    cluster: Cluster, namespace: str, pods: Sequence[Json], statuses: Sequence[Json], url: str | None, key: str | None
) -> Iterator[Engines]:
    """Open the ways to the pods; raises Failure."""
    with ExitStack() as stack:
        found = []
        for pod, status in zip(pods, statuses, strict=True):
            name = name_of(pod)
            address = url or stack.enter_context(port_forward(cluster, namespace, name))
            scrape = _by_proxy(cluster, namespace, name) if url else _by_address(address, key)
            found.append(Engine(name, address, cores_of(status), scrape))
        yield Engines(found, frozenset(map(identity, pods)))


def _by_proxy(cluster: Cluster, namespace: str, pod: str) -> Callable[[], str]:
    return lambda: cluster.pod_get(namespace, pod, "/metrics").decode()


def _by_address(address: str, key: str | None) -> Callable[[], str]:
    connection = Connection(address, key)
    return lambda: connection.get("/metrics").decode()


def ready_pods(pods: Sequence[Json], name: str) -> list[Json]:
    """The pods that serve; raises Failure where there are none, or not all are ready."""
    found = serving(pods)
    if not found:
        raise Failure(f"{name} has no pods", "Scale it up first: spec.replicas is 0, or nothing could be started.")
    if late := [name_of(pod) for pod in found if not is_ready(pod)]:
        raise Failure(f"not every pod of {name} is ready: {', '.join(late)}", "Wait until it is Ready.")
    return found


def envelope_of(statuses: Sequence[Json]) -> dict[str, Any]:
    """What all engines can do: the smallest limit, the K values that all of them have."""
    envelopes = [status["envelope"] for status in statuses]
    common = {
        key: sorted(set.intersection(*(set(e.get(key) or ()) for e in envelopes)))
        for key in ("preparedTokens", "allowedTokens")
    }
    return {**envelopes[0], **common, "maxNumSeqs": min(e["maxNumSeqs"] for e in envelopes)}
