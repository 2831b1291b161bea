"""Looks at all pods of some deployments, again and again: state, K, concurrency, and rates since the look before.

A pod that cannot be asked is a row that says why, never a failure of the command: pods come and go while one watches.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal

from dsd_operator.status.pods import can_serve, engine_restarts, is_ready, name_of
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import Failure
from kubectl_dsd.reach import ask_engines
from kubectl_dsd.top.rates import Rates, combined
from kubectl_dsd.top.reading import K_NOW, KV_CACHE, PLUGIN, REVISION, RUNNING, WAITING, Growth, Reading, growth, read

_AT_ONCE: Final = 16
_READS: Final = 3
"""At most, for one look. An engine changes its page five times a second, within a millisecond."""

State = Literal["serving", "plugin-off", "unreachable", "blocked", "starting", "ending"]
Identity = tuple[str, int]
"""UID of a pod and the restarts of its containers: the counters of one engine process."""


@dataclass(frozen=True)
class Schedule:
    """The schedule that an engine uses, as its metrics name it."""

    revision: str
    hash: str
    source: str


@dataclass(frozen=True)
class PodSample:
    """One pod at one time. Without a reading only `state` and `note` say something."""

    namespace: str
    deployment: str
    pod: str
    state: State
    note: str = ""
    reading: Reading | None = None
    growth: Growth | None = None
    """Since the look before; None at the first one, and after a restart."""

    @property
    def rates(self) -> Rates | None:
        """What the pod does per second."""
        return combined([self.growth]) if self.growth else None

    @property
    def tokens(self) -> tuple[int, ...]:
        """K of the latest step, one per engine core."""
        return tuple(int(value) for value in self.reading.values(K_NOW)) if self.reading else ()

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules in use: one, unless engine cores differ for a moment."""
        labels = self.reading.labels_of(REVISION) if self.reading else []
        found = {Schedule(each.get("revision", ""), each.get("hash", ""), each.get("source", "")) for each in labels}
        return tuple(sorted(found, key=lambda schedule: schedule.revision))

    @property
    def running(self) -> int | None:
        """Requests that run."""
        return None if self.reading is None else round(self.reading.total(RUNNING))

    @property
    def waiting(self) -> int | None:
        """Requests that wait for room."""
        return None if self.reading is None else round(self.reading.total(WAITING))

    @property
    def kv_cache(self) -> float | None:
        """Share of the KV cache that is in use, of the fullest engine core."""
        return max(self.reading.values(KV_CACHE), default=None) if self.reading else None


@dataclass(frozen=True)
class Look:
    """All pods at one time; `at` is a wall-clock time, in seconds since 1970."""

    at: float
    pods: tuple[PodSample, ...]

    def rates(self) -> Rates | None:
        """Of all pods that have rates."""
        found = [pod.growth for pod in self.pods if pod.growth]
        return combined(found) if found else None


class Watcher:
    """Looks at what `find` finds: deployments, each time anew. Remembers the readings of the look before."""

    def __init__(self, cluster: Cluster, find: Callable[[], Sequence[Json]]) -> None:
        self._cluster, self._find = cluster, find
        self._before: dict[Identity, Reading] = {}

    def look(self) -> Look:
        """Every pod of every deployment; raises Failure only where the API server itself does not answer."""
        found = [(deployment, pod) for deployment in self._find() for pod in self._cluster.pods(deployment)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            pods = list(pool.map(lambda pair: self._sample(*pair), found))
        readings = {identity(pod): s.reading for (_, pod), s in zip(found, pods, strict=True) if s.reading}
        self._before = readings
        return Look(time.time(), tuple(pods))

    def _sample(self, deployment: Json, pod: Json) -> PodSample:
        meta = deployment["metadata"]
        place = (str(meta["namespace"]), str(meta["name"]), name_of(pod))
        if not can_serve(pod):
            return PodSample(*place, "ending", "ended or being deleted")
        try:
            reading = self._read(place[0], place[2])
        except (Failure, ValueError) as failure:
            return PodSample(*place, *self._why(pod, failure))
        before = self._before.get(identity(pod))
        return PodSample(*place, *_mode(reading), reading, growth(before, reading) if before else None)

    def _read(self, namespace: str, pod: str) -> Reading:
        """The page, read again where it was read in the middle of a change."""
        for _ in range(_READS):
            text = self._cluster.pod_get(namespace, pod, "/metrics").decode()
            reading = read(text, time.monotonic())
            if reading.whole:
                break
        return reading

    def _why(self, pod: Json, failure: Exception) -> tuple[State, str]:
        """Why a pod gives no metrics: what asking for its status says, else the failure itself."""
        (asked,) = ask_engines(self._cluster, [pod])
        if asked.policy:
            return "blocked", asked.problem
        problem = asked.problem or f"its /metrics cannot be read: {failure}"
        if not is_ready(pod):
            return "starting", f"not serving yet: {problem}"
        return "unreachable", problem


def identity(pod: Mapping[str, object]) -> Identity:
    """What tells one engine process of a pod from the next."""
    return str(pod["metadata"]["uid"]), engine_restarts(pod)  # type: ignore[index]


def _mode(reading: Reading) -> tuple[State, str]:
    modes = {labels.get("mode") for labels in reading.labels_of(PLUGIN)}
    if not modes:
        return "plugin-off", "no dsd_ metrics: it does not run the DSD runtime, or its metrics are off"
    if "off" in modes:
        return "plugin-off", "the plugin is off: the schedule changes only with a restart"
    return "serving", ""
