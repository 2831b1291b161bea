"""Schedules, envelopes and revisions for the tests of the runtime."""

from dsd_runtime.protocol import Envelope, Revision
from dsd_runtime.schedule import Ranges, from_triples

OWNER = "team-a/demo/uid-1"


def ranges(*triples: tuple[int, int, int]) -> Ranges:
    """Ranges from (start, end, K)."""
    return from_triples(triples)


def revision(number: int, owner: str = OWNER) -> Revision:
    """A revision of one resource."""
    return Revision(owner=owner, number=number)


def envelope(maximum: int = 4, allowed: tuple[int, ...] | None = None, max_num_seqs: int = 16) -> Envelope:
    """The envelope of an ngram engine."""
    return Envelope(
        method="ngram",
        model_runner="V1",
        num_speculative_tokens=maximum,
        max_num_seqs=max_num_seqs,
        allowed_tokens=tuple(range(maximum + 1)) if allowed is None else allowed,
    )
