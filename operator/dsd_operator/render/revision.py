"""Minting revisions: a schedule's number must end above everything that is running, whatever happened before.

`protocol.Revision` says why a bare metadata.generation is not enough.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from dsd_operator.api import DSDDeployment
from dsd_runtime.protocol import ConfigFile, Revision
from dsd_runtime.schedule import Ranges, ScheduleRange, Smoothing

_MAX_NUMBER: Final = 2**53 - 1
"""Largest number the protocol carries (exact in every JSON reader)."""


def owner_of(resource: DSDDeployment) -> str:
    """The `owner` of the resource's revisions; the uid tells a re-created resource from the one before it."""
    meta = resource.metadata
    return f"{meta.namespace}/{meta.name}/{meta.uid}"


def next_revision(
    owner: str,
    ranges: Sequence[ScheduleRange],
    current: ConfigFile | None,
    seen: Iterable[Revision],
    now_ms: int,
    smoothing: Smoothing | None = None,
) -> Revision:
    """The revision for `ranges` and `smoothing`: the ConfigMap's while it still stands for them, else a new one above
    all `seen`.

    `current` is the ConfigMap's content, `seen` what the pods report, `now_ms` milliseconds since the epoch. A pod
    that is ahead of the ConfigMap (a restored backup) forces a new number too: it would refuse the old one as stale.
    """
    known = [*seen, *([current.revision] if current and current.revision else [])]
    kept = _still_valid(owner, (tuple(ranges), smoothing), current)
    if kept is not None and all(r == kept or r.number < kept.number for r in known):
        return kept
    highest = max((r.number for r in known), default=0)
    return Revision(owner=owner, number=min(max(highest + 1, now_ms), _MAX_NUMBER))


def _still_valid(owner: str, wanted: tuple[Ranges, Smoothing | None], current: ConfigFile | None) -> Revision | None:
    if current is None or current.revision is None or current.revision.owner != owner:
        return None
    return current.revision if (current.ranges, current.smoothing) == wanted else None
