"""Fixed inputs of the test bed: prompts, random schedules, the four drafters of the tiny models."""

import random
from collections.abc import Iterator, Mapping
from typing import Final

from dsd_runtime.schedule import Lookup, Ranges, from_triples
from tools.testbed.engine import Tokens
from tools.testbed.manifests import MAX_NUM_SEQS, MAX_TOKENS, Drafter

TARGET: Final = "target"

DRAFTERS: Final[Mapping[str, Drafter]] = {
    "ngram": Drafter("ngram"),
    "draft_model": Drafter("draft_model", "draft"),
    "eagle": Drafter("eagle", "eagle"),
    "eagle3": Drafter("eagle3", "eagle3"),
}

_FIRST_TOKEN, _LAST_TOKEN = 16, 511  # the tiny vocabulary without its special tokens


def prompts(count: int) -> list[Tokens]:
    """`count` prompts of 8 to 40 token ids, the same every time; half of each repeats, so that n-grams are found."""
    rng = random.Random(20)
    found = []
    for _ in range(count):
        words = tuple(rng.randint(_FIRST_TOKEN, _LAST_TOKEN) for _ in range(rng.randint(4, 20)))
        found.append(words + words)
    return found


def random_schedule(rng: random.Random) -> Ranges:
    """A valid schedule of one to four ranges for the engines of the test bed, gaps between ranges included."""
    count = rng.choice([1, 1, 2, 3, 4])
    starts = [1, *sorted(rng.sample(range(2, MAX_NUM_SEQS), count - 1))]
    ends = [rng.randint(start, following - 1) for start, following in zip(starts, [*starts[1:], 64], strict=True)]
    return from_triples((s, e, rng.randint(0, MAX_TOKENS)) for s, e in zip(starts, ends, strict=True))


def schedules(seed: str) -> Iterator[Ranges]:
    """An endless run of schedules, each different from the one before: off, the maximum, then random ones."""
    rng = random.Random(seed)
    previous: Ranges = ()
    following = [from_triples([(1, MAX_NUM_SEQS, 0)]), from_triples([(1, MAX_NUM_SEQS, MAX_TOKENS)])]
    while True:
        candidate = following.pop(0) if following else random_schedule(rng)
        if candidate != previous:
            previous = candidate
            yield candidate


def tokens_for(schedule: Ranges, largest_batch: int) -> set[int]:
    """Every K that `schedule` can choose for batches of 1 to `largest_batch` requests."""
    lookup = Lookup.of(schedule)
    return {lookup(size) for size in range(1, largest_batch + 1)}
