"""What one pass remembers for the next one of the same resource. A cache: losing it costs one idle apply, no more."""

from dataclasses import dataclass, field

from dsd_operator.status.observed import PushResult
from dsd_runtime.protocol import ConfigFile, Revision


@dataclass(frozen=True)
class Applied:
    """One child as we left it: what we asked for, which object it was, and which of its fields were ours then."""

    digest: str
    uid: str
    fields: str


@dataclass
class PodRecord:
    """One pod: its latest result, and how often in a row it did not answer."""

    result: PushResult | None = None
    revision: Revision | None = None
    """The revision that it reported last; None when it must be asked first."""
    failures: int = 0
    not_before: float = 0.0
    """Monotonic seconds; until then the latest result stands."""


@dataclass(frozen=True)
class Minted:
    """The revision that stands for a schedule, and the file that it was to replace."""

    config: ConfigFile
    replaced: ConfigFile | None


@dataclass
class Memory:
    """All of it, for the resource with this uid."""

    uid: str
    applied: dict[str, Applied] = field(default_factory=dict)
    """By kind."""
    pods: dict[str, PodRecord] = field(default_factory=dict)
    """By the pod's uid."""
    minted: Minted | None = None
    wanted_hash: str | None = None
    changed_at: float | None = None
    """When the schedule was changed (monotonic seconds), until every pod has it."""
