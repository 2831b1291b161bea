"""The schedule of a deployment while it is measured: one K for all batch sizes, and always the old one afterwards.

A change is sent with the version of the object that was read before it (`metadata.resourceVersion`), and each look at
the object is compared with what we made of it: whoever else changes it meanwhile wins, and the profile stops.

A change that nobody confirmed (Ctrl-C, or no answer in time) may still be carried out later. A write of ours after it
gives the object a newer version, and the API server then refuses the late one with a conflict.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api.constants import GROUP
from dsd_runtime.schedule import Ranges
from kubectl_dsd import kinds
from kubectl_dsd.cluster import FIELD_MANAGER, Cluster, Json
from kubectl_dsd.errors import ApiFailure, Failure
from kubectl_dsd.profile.ownership import given_back, last_change_by
from kubectl_dsd.wanted import Schedule, schedule_of

ACKNOWLEDGE_SECONDS: Final = 180.0
"""Longest wait for all pods; the mounted file takes a minute or two where the operator cannot reach a pod."""

RESTORE_SECONDS: Final = 60.0
"""How long restoring is tried while the API server does not answer."""

_POLL: Final = 0.1
_CONFLICT: Final = 409
_TRIES: Final = 20
_MARK: Final = f"{GROUP}/profile-ended"
"""An annotation that is written and taken away again, where a write is needed that changes nothing else."""


class ChangedMeanwhile(Failure):
    """Somebody else changed the deployment, or deleted it."""


def condition(resource: Mapping[str, Any], kind: str) -> Json:
    """A condition that speaks of the current generation; empty when there is none."""
    found: list[Json] = (resource.get("status") or {}).get("conditions") or []
    generation = resource["metadata"].get("generation")
    return next((c for c in found if c.get("type") == kind and c.get("observedGeneration") == generation), {})


def acknowledged(resource: Mapping[str, Any], wanted: str) -> bool:
    """Whether the status says that every pod uses the schedule with hash `wanted`, as of the current generation."""
    state = (resource.get("status") or {}).get("schedule") or {}
    return bool(
        state.get("observedGeneration") == resource["metadata"].get("generation")
        and state.get("hash") == wanted
        and state.get("podsTotal", 0) > 0
        and state.get("podsApplied") == state.get("podsTotal")
    )


@dataclass(frozen=True)
class Restored:
    """How it ended; `text` for people, `done` whether the old schedule (or somebody's newer one) is in force."""

    done: bool
    text: str


class Schedules:
    """The schedule of one deployment. `restore` must be called at the end, whatever happened."""

    def __init__(self, cluster: Cluster, resource: Json, say: Callable[[str], None] = lambda _: None) -> None:
        self._cluster, self._say = cluster, say
        self.namespace, self.name = str(resource["metadata"]["namespace"]), str(resource["metadata"]["name"])
        self.original: list[Json] = resource["spec"]["schedule"]
        self.present = schedule_of(resource)
        self._resource = resource
        self._uid = resource["metadata"]["uid"]
        self._generation = int(resource["metadata"].get("generation", 0))
        self._expected = self.original
        self._ours: list[list[Json]] = []
        self._unconfirmed = False
        self._back = False

    def undo_command(self) -> str:
        """What restores the schedule by hand, with kubectl alone."""
        patch = json.dumps({"spec": {"schedule": self.original}}, separators=(",", ":"))
        flags = "".join(f" {part}" for part in self._cluster.login.flags)
        return f"kubectl{flags} patch dsd {self.name} -n {self.namespace} --type merge -p '{patch}'"

    def check(self) -> Json:
        """The resource as it is; raises ChangedMeanwhile where it is not as we left it."""
        resource = self._read()
        self._compare(resource)
        return resource

    def use(self, ranges: Ranges) -> Json:
        """Set a schedule and wait until every pod has acknowledged it; returns the resource. Raises Failure."""
        wanted = Schedule(ranges, self.present.smoothing)
        self._set(wanted.data()["ranges"])
        return self._wait(wanted.hash)

    def keep(self, ranges: Ranges) -> None:
        """Set a schedule for good: `restore` will leave it."""
        self.use(ranges)
        self._ours = []

    def restore(self, seconds: float = RESTORE_SECONDS) -> Restored:
        """Put the original schedule back where ours is in force; tries for `seconds`. Never raises."""
        if not self._ours:
            return Restored(True, "")
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._put_back()
            except ChangedMeanwhile as gone:
                return Restored(True, gone.message)
            except Failure as failure:
                if time.monotonic() > deadline:
                    return self._given_up(failure)
                missing = "its owners are" if self._back else "the schedule is"
                self._say(f"{missing} not restored yet ({failure.message}); trying again")
                time.sleep(1.0)

    def _given_up(self, failure: Failure) -> Restored:
        if self._back:
            return Restored(True, f"the schedule is as it was before; {self._stays_owner(failure)}")
        return Restored(False, f"{failure.message}. Restore the schedule with\n  {self.undo_command()}")

    def _put_back(self) -> Restored:
        resource = self._read()
        present = resource["spec"]["schedule"]
        if present != self.original and present not in self._ours:
            self._ours = []
            who = last_change_by(resource)
            return Restored(
                True,
                f"{who} has changed the schedule meanwhile, which stays. The one before the profile comes back with\n"
                f"  {self.undo_command()}",
            )
        if present != self.original:
            resource = self._patch(resource, self.original)
        elif self._unconfirmed:
            resource = self._outdate(resource)
        self._back, self._unconfirmed = True, False
        self._give_back(resource)
        self._ours = []
        return Restored(True, "the schedule is as it was before")

    def _outdate(self, resource: Json) -> Json:
        """Give the object a newer version than the one that a change still on its way was made for."""
        changed = self._mark(resource, str(int(time.time())))
        try:
            return self._mark(changed, None)
        except ApiFailure as failure:
            if failure.status != _CONFLICT:
                self._say(f"the annotation {_MARK} stays, which means nothing: {failure.message}")
            return self._read()

    def _mark(self, resource: Json, value: str | None) -> Json:
        meta = {"resourceVersion": resource["metadata"]["resourceVersion"], "annotations": {_MARK: value}}
        return self._cluster.patch(kinds.DEPLOYMENT, self.namespace, self.name, {"metadata": meta})

    def _give_back(self, changed: Json) -> None:
        """Let the owners of the schedule be those from before; a conflict on the way may be, and is tried again."""
        for _ in range(_TRIES):
            fields = given_back(changed, self._resource)
            if fields is None or changed["spec"]["schedule"] != self.original:
                return
            body = {"metadata": {"resourceVersion": changed["metadata"]["resourceVersion"], "managedFields": fields}}
            try:
                self._cluster.patch(kinds.DEPLOYMENT, self.namespace, self.name, body)
                return
            except ApiFailure as failure:
                if failure.may_pass:
                    raise
                if failure.status != _CONFLICT:
                    self._say(self._stays_owner(failure))
                    return
                changed = self._read()

    @staticmethod
    def _stays_owner(failure: Failure) -> str:
        return f"the field manager {FIELD_MANAGER} stays an owner of the schedule: {failure.message}"

    def _set(self, wanted: list[Json]) -> None:
        """Patch until no other write came between; what is not the schedule (a status) may change meanwhile."""
        for _ in range(_TRIES):
            resource = self.check()
            if resource["spec"]["schedule"] == wanted:
                return
            self._ours.append(wanted)  # before it is sent: an interrupt may come before the answer
            self._unconfirmed = True
            try:
                changed = self._patch(resource, wanted)
            except ApiFailure as failure:
                self._unconfirmed = failure.may_pass
                if failure.status != _CONFLICT:
                    raise
                continue
            self._unconfirmed = False
            self._generation, self._expected = int(changed["metadata"]["generation"]), wanted
            return
        raise Failure("the schedule cannot be changed: the object changes all the time", "Try again later.")

    def _patch(self, resource: Json, schedule: list[Json]) -> Json:
        version = resource["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "spec": {"schedule": schedule}}
        return self._cluster.patch(kinds.DEPLOYMENT, self.namespace, self.name, body)

    def _wait(self, wanted: str) -> Json:
        deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
        while not acknowledged(resource := self.check(), wanted):
            if time.monotonic() > deadline:
                said = condition(resource, "ScheduleApplied").get("message", "nothing of this schedule yet")
                raise Failure(
                    f"after {ACKNOWLEDGE_SECONDS:.0f} s not every pod uses the schedule: {said}",
                    f"`kubectl dsd explain {self.name} -n {self.namespace}` looks for the cause.",
                )
            time.sleep(_POLL)
        return resource

    def _read(self) -> Json:
        found = self._cluster.get(kinds.DEPLOYMENT, self.namespace, self.name)
        if found is None or found["metadata"]["uid"] != self._uid:
            raise ChangedMeanwhile(f"DSDDeployment {self.name} was deleted meanwhile", "")
        return found

    def _compare(self, resource: Json) -> None:
        present = resource["spec"]["schedule"]
        if present != self._expected:
            raise self._theirs(resource)
        if int(resource["metadata"]["generation"]) != self._generation:
            raise ChangedMeanwhile(
                "the spec of the deployment was changed meanwhile (not its schedule): the measurement is void",
                "Start again when nobody else works on it. An autoscaler counts too.",
            )

    def _theirs(self, resource: Json) -> ChangedMeanwhile:
        who = last_change_by(resource)
        hint = "Start again when nobody else works on it."
        if resource["spec"]["schedule"] == self.original and who != FIELD_MANAGER:
            hint = f"{who} has put back the schedule from before. Pause what keeps the object in sync, and start again."
        return ChangedMeanwhile(f"the schedule was changed meanwhile by {who}", hint)
