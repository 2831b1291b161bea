"""Random valid schedules, on the wire's form: single sizes, gaps, rising K, ends out of reach, smoothing."""

import random
from typing import Any

from dsd_runtime.schedule import MAX_BATCH_SIZE, MAX_RANGES

Wire = list[dict[str, int]]


def ranges(chance: random.Random, maximum: int) -> Wire:
    """Any schedule for an engine with this maximum; most of its bounds lie where a small engine's batches do."""
    found: Wire = []
    start = 1
    for _ in range(chance.choice((1, 1, 2, 2, 3, 4, 6, MAX_RANGES))):
        end = start + chance.choice((0, 0, 1, 2, 3, 5, 40))
        found.append({"startBatchSize": start, "endBatchSize": end, "numSpeculativeTokens": chance.randint(0, maximum)})
        start = end + 1 + chance.choice((0, 0, 0, 1, 4))
    if chance.random() < 0.1:
        found[-1]["endBatchSize"] = MAX_BATCH_SIZE
    return found


def put(chance: random.Random, owner: str, number: int, maximum: int) -> dict[str, Any]:
    """The body of a PUT, every third with smoothing."""
    body: dict[str, Any] = {"revision": {"owner": owner, "number": number}, "ranges": ranges(chance, maximum)}
    if chance.random() < 1 / 3:
        body["smoothing"] = {"dwellSteps": chance.choice((0, 1, 5, 20)), "marginPercent": chance.choice((0, 10, 50))}
    return body
