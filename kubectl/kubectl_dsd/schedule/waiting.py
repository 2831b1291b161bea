"""Follows a change until the pods use it, and says how far it is.

The operator's word counts; a pod that the operator cannot reach is asked directly, for the mounted file may have
brought the schedule. A pod that still starts cannot answer and starts with the schedule: nobody waits for it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.status.pods import name_of
from dsd_operator.status.reasons import Reason
from kubectl_dsd import kinds
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import Failure
from kubectl_dsd.pod_view import pod_views
from kubectl_dsd.reach import ask_engines
from kubectl_dsd.wanted import Schedule, schedule_of

HURRIED_SECONDS: Final = 3.0
"""For an engine's own word while a change is made: one that hangs must not hold it up."""

_POLL_SECONDS: Final = 0.2
_ASK_SECONDS: Final = 2.0
_SILENCE_SECONDS: Final = 10.0
"""How long the operator may say nothing before the person is told; it takes a fraction of a second."""

_FATAL: Final = frozenset({Reason.REFUSED_BY_ENGINE.value, Reason.RUNTIME_PLUGIN_OFF.value})


@dataclass
class Progress:
    """How far a change is. `seen`: the operator has worked on it. `late`: pod -> reason."""

    total: int = 0
    applied: int = 0
    seen: bool = False
    late: dict[str, str] = field(default_factory=dict)
    message: str = ""
    seconds: float = 0.0

    @property
    def starting(self) -> list[str]:
        """Pods that still start."""
        return [pod for pod, reason in self.late.items() if reason == Reason.POD_NOT_READY]

    @property
    def done(self) -> bool:
        """Nobody is left to wait for."""
        return self.seen and self.applied + len(self.starting) >= self.total

    def data(self) -> dict[str, Any]:
        """As `-o json` shows it."""
        late = [{"pod": pod, "reason": reason} for pod, reason in self.late.items()]
        return {"applied": self.applied, "total": self.total, "late": late, "seconds": round(self.seconds, 3)}


Tell = Callable[[Progress], None]


class Follower:
    """One change on its way: `changed` is the resource as the API server answered the patch."""

    def __init__(self, cluster: Cluster, changed: Json, wanted: Schedule, timeout: float) -> None:
        self._cluster = cluster
        self._changed = changed
        self._wanted = wanted
        self._timeout = timeout
        self._begin = time.monotonic()
        self._asked = float("-inf")
        self._confirmed: set[str] = set()

    def wait(self, tell: Tell) -> Progress:
        """Until done; raises Failure when it cannot be, or when time is up. `tell` hears of every look."""
        while True:
            found = self._look()
            tell(found)
            if found.done:
                return found
            if found.seconds >= self._timeout:
                raise self._too_late(found)
            time.sleep(_POLL_SECONDS)

    def _look(self) -> Progress:
        meta = self._changed["metadata"]
        now = self._cluster.get(kinds.DEPLOYMENT, meta["namespace"], meta["name"])
        if now is None or now["metadata"]["uid"] != meta["uid"]:
            raise Failure("the deployment was deleted in the meantime")
        if schedule_of(now).hash != self._wanted.hash:
            raise Failure(
                f"somebody else has set another schedule by now: {schedule_of(now).short()}",
                "A tool that manages this resource may have set it back: `kubectl dsd explain` names it.",
            )
        found = self._progress(now)
        self._raise_if_hopeless(now, found)
        if found.seen and not found.done:
            self._ask_the_late(now, found)
        return found

    def _progress(self, now: Mapping[str, Any]) -> Progress:
        status = (now.get("status") or {}).get("schedule") or {}
        seconds = time.monotonic() - self._begin
        if int(status.get("observedGeneration") or 0) < int(self._changed["metadata"]["generation"]):
            silent = seconds > _SILENCE_SECONDS
            return Progress(
                seconds=seconds, message="the operator has not looked at it yet: does it run?" if silent else ""
            )
        late = {str(entry["pod"]): str(entry["reason"]) for entry in status.get("outOfSync") or ()}
        found = Progress(int(status.get("podsTotal") or 0), int(status.get("podsApplied") or 0), True, late)
        found.seconds = seconds
        return found

    def _raise_if_hopeless(self, now: Mapping[str, Any], found: Progress) -> None:
        conditions = {c["type"]: c for c in (now.get("status") or {}).get("conditions") or ()}
        told = str((conditions.get("ScheduleApplied") or {}).get("message") or "")
        if found.seen and not ((now.get("status") or {}).get("schedule") or {}).get("hash"):
            raise Failure(f"the schedule is stored, and the operator cannot use it: {told}")
        refusing = [pod for pod, reason in found.late.items() if reason in _FATAL]
        if refusing:
            raise Failure(
                f"the schedule is stored, and {len(refusing)} of {found.total} pods do not take it: {told}",
                "`kubectl dsd explain` says what to do.",
            )

    def _ask_the_late(self, now: Json, found: Progress) -> None:
        """Take the late pods' own word, now and then."""
        if time.monotonic() - self._asked >= _ASK_SECONDS:
            self._asked = time.monotonic()
            pods = [pod for pod in self._cluster.pods(now) if name_of(pod) in found.late]
            asked = ask_engines(self._cluster, pods, timeout=HURRIED_SECONDS)
            views = pod_views({**now, "status": {}}, self._wanted, asked)
            self._confirmed = {view.name for view in views if view.in_sync and view.asked.status is not None}
        for pod in self._confirmed & found.late.keys():
            del found.late[pod]
            found.applied += 1

    def _too_late(self, found: Progress) -> Failure:
        if not found.seen:
            return Failure(
                f"the schedule is stored, and the operator has not looked at it for {found.seconds:.0f} s",
                "Does it run, and does it watch this namespace? `kubectl dsd explain` looks.",
            )
        late = ", ".join(f"{pod} ({reason})" for pod, reason in found.late.items())
        using = f"{found.applied} of {found.total} pods use it after {found.seconds:.0f} s"
        return Failure(
            f"the schedule is stored; {using}; not: {late}",
            "The operator goes on. `kubectl dsd explain` says what is in the way, `schedule diff` who uses what.",
        )
