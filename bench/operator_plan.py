"""How large the operator's benchmark is, and what it says of its method. Pure."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.operator_admin import Json, Name
from bench.operator_fleet import Requests
from dsd_operator.handlers.watch import CHILDREN
from dsd_runtime.schedule import Ranges, from_triples
from tools.testbed.manifests import ranges_of

RESYNC_SECONDS: Final = 40
"""Between two resyncs while they are measured; the passes of one are spread over half of it."""

RESYNCS: Final = 2
ROUNDS: Final = 2
SLOW_SECONDS: Final = 5.0
BLOCK: Final = 20
"""Changes in a row under one condition."""

_HOUR: Final = 3600
_DEFAULT_RESYNC_SECONDS: Final = 600
_WATCHES: Final = 1 + len(CHILDREN)
_WATCH_SECONDS: Final = 300
_KEYS_SECONDS: Final = 300
_KEYS_REQUESTS: Final = 2


@dataclass(frozen=True)
class Plan:
    """How large it is."""

    deployments: int
    replicas: int
    large: int
    namespaces: int
    changes: int
    """Of the large deployment, under each condition."""
    many: int
    """Deployments that are changed at once."""

    @property
    def places(self) -> list[str]:
        """The namespaces."""
        return [f"team-{number:02}" for number in range(self.namespaces)]

    @property
    def names(self) -> list[Name]:
        """All small deployments."""
        places = itertools.cycle(self.places)
        return [(next(places), f"model-{number:04}") for number in range(self.deployments)]

    @property
    def large_name(self) -> Name:
        """The one with very many pods."""
        return self.places[0], "large"

    @property
    def method(self) -> str:
        """The paragraph of the result."""
        return " ".join(
            f"""
            {self.deployments} DSDDeployments of {self.replicas} pods in {self.namespaces} namespaces, and one of
            {self.large} pods, on an API server with etcd, the controllers, the scheduler and kwok, all on the cores of
            this machine together with the operator. The pods are those of fake nodes: kwok makes them Running and Ready
            at once, with addresses of the loopback range, and one server there answers as the runtime does, with a
            schedule of its own for each address; it takes tokens without checking them, which is the pods' work. The
            EndpointSlice controllers do not run, as the API server refuses loopback addresses. "From nothing" ends when
            every resource is Ready with all its pods on the schedule. A start of the operator beside all resources ends
            when each had its first pass. For the resync its interval is {RESYNC_SECONDS} s (the default is
            {_DEFAULT_RESYNC_SECONDS} s); its passes are spread over half of that, so {RESYNC_SECONDS / 2:g} s is the
            least it can take, and every pod is asked in each. Requests are counted by the operator. An idle hour is
            {_HOUR // _DEFAULT_RESYNC_SECONDS} times what one resync cost, and besides the watches ({_WATCHES}, opened
            anew every {_WATCH_SECONDS} s) and the signing keys (read every {_KEYS_SECONDS} s). A change is a merge
            patch; the clock starts when the API server has answered it, and stops when the engine of the last pod has
            put the schedule into use. Changes of the large deployment come in blocks of {BLOCK}, by turns with all pods
            answering and with one pod that takes {SLOW_SECONDS:g} s to answer and one that never answers; then only
            the other pods are measured. In the same way {self.many} deployments are changed at once, {ROUNDS} rounds
            each, where every hundredth has such pods. A change waits for no status before the next one.
            """.split()
        )

    def idle_hour(self, resync: Requests) -> Requests:
        """What an hour costs in which nothing happens, from what one resync cost."""
        resyncs = _HOUR / _DEFAULT_RESYNC_SECONDS
        verbs = {verb: count * resyncs for verb, count in resync.verbs.items()}
        verbs["GET"] += _WATCHES * _HOUR / _WATCH_SECONDS + _KEYS_REQUESTS * _HOUR / _KEYS_SECONDS
        return Requests(verbs, resync.passes * resyncs)


def spec(schedule: Ranges, replicas: int | None = None) -> Json:
    """A whole spec, or only what changes."""
    changed: Json = {"schedule": ranges_of(schedule)}
    if replicas is None:
        return changed
    drafter = {"method": "ngram", "numSpeculativeTokens": 3, "promptLookup": {"min": 2, "max": 4}}
    return {"model": {"name": "acme/tiny-llama"}, "drafter": drafter, "replicas": replicas, **changed}


def schedules(series: int = 0) -> Iterator[Ranges]:
    """Schedules, each another one; no two series have one in common."""
    for number in itertools.count():
        end = 1 + number % 200
        yield from_triples([(1, end, 3), (end + 1, 256 - series, 1)])
