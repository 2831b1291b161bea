"""Schedules and statuses in words and table rows. Pure.

Statuses are taken as plain data: a server of another version may say more than this one knows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsd_runtime.schedule import MAX_BATCH_SIZE, Lookup, Ranges, Smoothing, from_triples

SOURCES = {"start": "start (no schedule file)", "file": "the schedule file", "http": "HTTP"}


def ranges_of(schedule: Mapping[str, Any]) -> Ranges:
    """The ranges in a status."""
    return from_triples(
        [(r["startBatchSize"], r["endBatchSize"], r["numSpeculativeTokens"]) for r in schedule["ranges"]]
    )


def smoothing_of(schedule: Mapping[str, Any]) -> Smoothing | None:
    """The smoothing in a status; None where it is off."""
    values = schedule.get("smoothing") or {}
    found = Smoothing(dwell_steps=values.get("dwellSteps", 0), margin_percent=values.get("marginPercent", 0))
    return None if found.off else found


def smoothing_text(smoothing: Smoothing | None) -> str:
    """Smoothing in words."""
    if smoothing is None or smoothing.off:
        return "off"
    return f"at least {smoothing.dwell_steps} steps for each K, margin {smoothing.margin_percent} %"


def span(start: int, end: int | None) -> str:
    """A range of batch sizes; None or the largest number there is: open."""
    if end is None or end >= MAX_BATCH_SIZE:
        return f"{start} and more"
    return str(start) if start == end else f"{start}-{end}"


def schedule_rows(ranges: Ranges, now: Mapping[int, Sequence[int]]) -> Iterator[tuple[str, str, str]]:
    """(batch sizes, K, remark) of each range and gap. `now`: K -> the engine cores that use it at the moment."""
    counts = [r.num_speculative_tokens for r in ranges]
    previous = None
    for r in ranges:
        if previous is not None and r.start_batch_size > previous.end_batch_size + 1:
            gap = span(previous.end_batch_size + 1, r.start_batch_size - 1)
            yield gap, str(previous.num_speculative_tokens), "between two ranges: keeps the K before"
        k = r.num_speculative_tokens
        # Two ranges with one K cannot be told apart: the engine says which K it uses, not for which batch size.
        used = now.get(k, ()) if counts.count(k) == 1 else ()
        yield span(r.start_batch_size, r.end_batch_size), str(k), "in use" + _engines(used) if used else ""
        previous = r
    if previous is not None and previous.end_batch_size < MAX_BATCH_SIZE:
        rest = span(previous.end_batch_size + 1, None)
        yield rest, str(previous.num_speculative_tokens), "above the last range: keeps its K"


def _engines(numbers: Sequence[int]) -> str:
    return "" if list(numbers) == [0] else f" by engine {', '.join(map(str, numbers))}"


def in_use(status: Mapping[str, Any]) -> dict[int, list[int]]:
    """K -> the engine cores whose latest step chose it; cores that have not run a step are left out."""
    found: dict[int, list[int]] = {}
    for core in status.get("engines", ()):
        if core["steps"]:
            found.setdefault(core["numSpeculativeTokens"], []).append(core["engine"])
    return found


def engine_rows(status: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """(engine core, K now, steps, schedule) of each engine core."""
    common = status.get("schedule", {}).get("hash")
    for core in status.get("engines", ()):
        schedule = core["schedule"]
        same = "" if schedule["hash"] == common else " (differs from the one above)"
        k = str(core["numSpeculativeTokens"]) if core["steps"] else "none yet"
        yield str(core["engine"]), k, str(core["steps"]), f"{revision_text(schedule)}{same}"


def revision_text(schedule: Mapping[str, Any]) -> str:
    """The revision in words."""
    revision = schedule.get("revision")
    return f"revision {revision['number']} of {revision['owner']}" if revision else "no revision"


def envelope_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """What was fixed at start, in sentences."""
    envelope = status["envelope"]
    versions = status["versions"]
    parallel = ", parallel drafting" if envelope.get("parallelDrafting") else ""
    yield (
        f"method {envelope['method']}{parallel} on model runner {envelope['modelRunner']}, vLLM {versions['vllm']}, "
        f"dsd-runtime {versions['runtime']}"
    )
    yield (
        f"K up to {envelope['numSpeculativeTokens']}, allowed {_numbers(envelope['allowedTokens'])}, prepared "
        f"{_numbers(envelope['preparedTokens'])}; at most {envelope['maxNumSeqs']} requests in a step"
    )
    if envelope.get("verifyOnly"):
        yield "a smaller K saves verification only: this drafter always drafts the maximum"


def _numbers(values: Sequence[int]) -> str:
    """`0-4`, or `0, 1, 4`."""
    if len(values) > 2 and list(values) == list(range(values[0], values[-1] + 1)):
        return f"{values[0]}-{values[-1]}"
    return ", ".join(map(str, values)) or "none"


def problem_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong now, and what was refused last."""
    for fault in status.get("faults", ()):
        yield f"wrong since {fault['since']} ({fault['source']}): {fault['message']}"
    if error := status.get("lastError"):
        yield f"last error ({error['source']}, {error['time']}): {error['message']}"


def change_rows(before: Ranges, after: Ranges) -> Iterator[tuple[str, str, str]]:
    """(batch sizes, K before, K after), with a row wherever either schedule changes its K."""
    lookups = Lookup.of(before), Lookup.of(after)
    starts = sorted({r.start_batch_size for r in (*before, *after)})
    merged: list[tuple[int, int, int]] = []
    for start in starts:
        pair = (lookups[0](start), lookups[1](start))
        if not merged or merged[-1][1:] != pair:
            merged.append((start, *pair))
    for i, (start, old, new) in enumerate(merged):
        end = merged[i + 1][0] - 1 if i + 1 < len(merged) else None
        yield span(start, end), str(old), str(new)
