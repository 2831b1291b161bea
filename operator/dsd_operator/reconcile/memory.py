"""What one pass remembers for the next one of the same resource. A cache: losing it costs one idle apply, no more."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsd_operator.reconcile.delivery import Delivery, Target
from dsd_operator.render.history import Pods
from dsd_operator.status.observed import PushResult
from dsd_operator.status.pods import Fault
from dsd_runtime.protocol import ConfigFile


@dataclass(frozen=True)
class Applied:
    """One child as we left it: what we asked for, which object it was, and our entry in its managedFields then."""

    digest: str
    uid: str
    entry: str


@dataclass
class PodRecord:
    """One pod: what it said last, what is on its way to it, and how often in a row it did not answer."""

    delivery: Delivery | None = None
    task: "asyncio.Task[Delivery] | None" = None
    target: Target | None = None
    """What the task brings, or the last one brought."""
    shown: PushResult | None = None
    """What a pass told of the pod because the task had not ended."""
    late: bool = False
    """Whether the pass that asked the pod last ended before the answer came."""
    failures: int = 0
    not_before: float = 0.0
    """Monotonic seconds; until then the latest delivery stands."""


@dataclass(frozen=True)
class Minted:
    """The revision that stands for a schedule, and the file that it was to replace."""

    config: ConfigFile
    replaced: ConfigFile | None


@dataclass(frozen=True)
class Crash:
    """Why a pod of a group crashed, the number of the group, and the revision that the pod was made from."""

    group: int
    revision: str
    fault: Fault


@dataclass(frozen=True)
class Kept:
    """The ControllerRevision with the description of the pods for the envelope of this hash, as JSON.

    Parsed it takes ten times the memory, and there is one for each resource. `stored`: the API server had exactly this
    when it was last asked.
    """

    envelope: str
    text: str
    stored: bool

    @classmethod
    def of(cls, pods: Pods) -> "Kept":
        """What is to be known of `pods` in later passes."""
        return cls(pods.envelope, json.dumps(pods.manifest), pods.stored)

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The ControllerRevision."""
        found: Mapping[str, Any] = json.loads(self.text)
        return found


@dataclass
class Memory:
    """All of it, for the resource with this uid."""

    uid: str
    applied: dict[str, Applied] = field(default_factory=dict)
    """By kind."""
    absent: set[str] = field(default_factory=set)
    """Kinds that a look found nothing of: what is not wanted need not be looked for again."""
    sending: set[tuple[str, str]] = field(default_factory=set)
    """Kind and name of the children that the API server has not answered for."""
    stored: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the API server answered to the applies that are under way, as long as they are; by kind."""
    pods: dict[str, PodRecord] = field(default_factory=dict)
    """By the pod's uid."""
    restarts: dict[str, int] | None = None
    """Restarts of the engine container by the pod's uid, as the last pass saw them; None before the first one."""
    used: Kept | None = None
    """The description of the pods for the latest envelope that could be used; None before the history is read."""
    looked_at: float | None = None
    """When it was last seen that the API server has it (monotonic seconds); None before the first look."""
    expired: tuple[Mapping[str, Any], ...] = ()
    """Revisions to delete once that one is written."""
    crashes: dict[str, Crash] | None = None
    """Of pods whose successors are not ready yet, by the pod's name; None before the first pass."""
    lacking: dict[str, float] = field(default_factory=dict)
    """Since when a StatefulSet has had too few pods (monotonic seconds), by its name."""
    minted: Minted | None = None
    wanted_hash: str | None = None
    changed_at: float | None = None
    """When the schedule was changed (monotonic seconds), until every pod has it."""
