"""What the operator's benchmark does, phase by phase; each yields rows of the result's `data`."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from bench.operator_admin import Name, manifest
from bench.operator_fleet import Fleet, Requests
from bench.operator_plan import BLOCK, RESYNC_SECONDS, RESYNCS, ROUNDS, SLOW_SECONDS, Plan, schedules, spec
from bench.results import extent, spread
from dsd_runtime.schedule import Ranges, schedule_hash
from tools.testbed.fake_engines import Pod

ALL_ANSWER: Final = "all answer"
SLOW_AND_DEAD: Final = "one slow, one dead: the others"

_LONG_SECONDS: Final = 900.0
_RESYNC_LIMIT_SECONDS: Final = 180.0
_CHANGE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.005
_MEGA: Final = 1e6

Rows = list[dict[str, Any]]


async def measure(fleet: Fleet, plan: Plan) -> Rows:
    """All phases."""
    say = _Progress()
    rows = await _from_nothing(fleet, plan, say)
    rows += await _large(fleet, plan, say)
    starts = [await _restart(fleet, say, RESYNC_SECONDS=str(RESYNC_SECONDS))]
    rows += await _resyncs(fleet, plan, say)
    starts.append(await _restart(fleet, say))
    rows.append({"start": "all are there already", "seconds": extent(starts), "samples": starts})
    rows += await _changes(fleet, plan, say)
    rows += await _many(fleet, plan, say)
    rows += _memory(fleet)
    return rows


class _Progress:
    """Lines that say what happened when."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, text: str) -> None:
        print(f"{time.monotonic() - self._started:6.1f} s  {text}", flush=True)


async def _from_nothing(fleet: Fleet, plan: Plan, say: _Progress) -> Rows:
    fleet.start()
    await fleet.operator_ready()
    for place in plan.places:
        await fleet.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": place}})
    before, begun = await fleet.idle(), time.monotonic()
    say(f"the operator runs; creating {plan.deployments} deployments of {plan.replicas} pods")
    watching = asyncio.create_task(_tell(fleet, plan.deployments, say))
    body = spec(next(schedules()), plan.replicas)
    await fleet.admin.create(manifest(name, body) for name in plan.names)
    say("created")
    seconds = await fleet.until_ready(plan.names, plan.replicas, _LONG_SECONDS) - begun
    watching.cancel()
    used = await fleet.idle() - before
    say(f"all Ready after {seconds:.1f} s; {_words(used)}")
    return [
        {"start": "from nothing", "seconds": extent([seconds]), "samples": [seconds]},
        _requests("deployment made from nothing", [used], plan.deployments),
    ]


async def _tell(fleet: Fleet, wanted: int, say: _Progress) -> None:
    while True:
        await asyncio.sleep(10)
        ready = sum(state.ready for state in fleet.admin.states.values())
        say(f"{ready} of {wanted} are Ready; operator {fleet.memory('VmRSS') / _MEGA:.0f} MB")


async def _large(fleet: Fleet, plan: Plan, say: _Progress) -> Rows:
    begun = time.monotonic()
    await fleet.admin.create([manifest(plan.large_name, spec(next(schedules()), plan.large))])
    seconds = await fleet.until_ready([plan.large_name], plan.large, _LONG_SECONDS) - begun
    await fleet.idle()
    say(f"one deployment of {plan.large} pods Ready after {seconds:.1f} s; operator {_memory_words(fleet)}")
    await fleet.find_pods(plan.places)
    return [{"start": f"one of {plan.large} pods", "seconds": extent([seconds]), "samples": [seconds]}]


async def _restart(fleet: Fleet, say: _Progress, **settings: str) -> float:
    """Seconds from the operator's start until each resource had its first pass, and all are Ready."""
    begun = time.monotonic()
    fleet.start(**settings)
    seconds = await fleet.operator_ready() - begun
    used = await fleet.idle()
    not_ready = [name for name, state in fleet.admin.states.items() if not state.ready]
    if not_ready:
        raise RuntimeError(f"not Ready after the operator's start: {not_ready[:5]}")
    say(f"operator started: all Ready after {seconds:.1f} s; {_words(used)}; {_memory_words(fleet)}")
    return seconds


async def _resyncs(fleet: Fleet, plan: Plan, say: _Progress) -> Rows:
    everything = fleet.pods(*fleet.addresses)
    seconds, used = [], []
    for _ in range(RESYNCS):
        before = await fleet.idle()
        mark = time.monotonic()
        await _until_asked(everything, mark)
        used.append(await fleet.idle() - before)
        seconds.append(max(p.asked for p in everything) - min(p.asked for p in everything))
        say(f"a resync took {seconds[-1]:.1f} s; {_words(used[-1])}")
    return [
        {"start": "resync", "seconds": extent(seconds), "samples": seconds},
        _requests("full resync", used, 1),
        _requests("idle hour", [plan.idle_hour(u) for u in used], 1),
    ]


async def _until_asked(pods: Sequence[Pod], mark: float) -> None:
    """Wait until the operator has asked every pod since the mark, as each pass does."""
    deadline = time.monotonic() + _RESYNC_LIMIT_SECONDS
    while missing := sum(pod.asked < mark for pod in pods):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{missing} of {len(pods)} pods were not asked in {_RESYNC_LIMIT_SECONDS:g} s")
        await asyncio.sleep(0.2)


async def _changes(fleet: Fleet, plan: Plan, say: _Progress) -> Rows:
    """Changes of the large deployment, in blocks with and without pods that do not answer by turns."""
    wanted, pause = schedules(1), random.Random(1)
    found: dict[str, list[float]] = {ALL_ANSWER: [], SLOW_AND_DEAD: []}
    used: dict[str, list[Requests]] = {ALL_ANSWER: [], SLOW_AND_DEAD: []}
    for block in range(2 * plan.changes // BLOCK):
        pods = (ALL_ANSWER, SLOW_AND_DEAD)[block % 2]
        before = await fleet.idle()
        async with _faults(fleet, [plan.large_name] if block % 2 else []) as healthy:
            for _ in range(BLOCK):
                found[pods].append(await _change(fleet, plan.large_name, next(wanted), healthy[plan.large_name]))
                await asyncio.sleep(pause.uniform(0.2, 0.8))
        used[pods].append(await fleet.idle() - before)
        figures = spread(found[pods][-BLOCK:])
        say(f"{pods}: p50 {figures['p50']:.2f} s, max {figures['max']:.2f} s; {_words(used[pods][-1])}")
    what = f"one of {plan.large} pods"
    return [_seconds(what, pods, found[pods]) for pods in found] + [
        _requests(f"change of {what}", used[ALL_ANSWER], BLOCK)
    ]


async def _change(fleet: Fleet, name: Name, schedule: Ranges, healthy: Sequence[str]) -> float:
    answered = await fleet.admin.change(name, spec(schedule))
    return await _acknowledged(fleet, healthy, schedule_hash(schedule)) - answered


async def _acknowledged(fleet: Fleet, addresses: Sequence[str], wanted: str) -> float:
    async with asyncio.timeout(_CHANGE_SECONDS):
        while True:
            last = fleet.engines.last_put(addresses, wanted)
            if last is not None:
                return last
            await asyncio.sleep(_POLL_SECONDS)


async def _many(fleet: Fleet, plan: Plan, say: _Progress) -> Rows:
    """Very many deployments changed at once."""
    wanted, names = schedules(2), plan.names[: plan.many]
    found: dict[str, list[float]] = {ALL_ANSWER: [], SLOW_AND_DEAD: []}
    used: list[Requests] = []
    for number in range(2 * ROUNDS):
        pods = (ALL_ANSWER, SLOW_AND_DEAD)[number % 2]
        before, schedule = await fleet.idle(), next(wanted)
        async with _faults(fleet, names[::100] if number % 2 else []) as healthy:
            answered = await fleet.admin.change_all(names, spec(schedule))
            ended = [await _acknowledged(fleet, healthy[name], schedule_hash(schedule)) for name in names]
        took = [end - answered[name] for name, end in zip(names, ended, strict=True)]
        found[pods] += took
        requests = await fleet.idle() - before
        used += [] if number % 2 else [requests]
        whole = max(ended) - min(answered.values())
        say(f"{len(names)} at once, {pods}: p50 {spread(took)['p50']:.2f} s, all {whole:.2f} s; {_words(requests)}")
    what = f"{len(names)} at once"
    return [_seconds(what, pods, found[pods]) for pods in found] + [
        _requests(f"change of one of {plan.replicas} pods", used, len(names))
    ]


@asynccontextmanager
async def _faults(fleet: Fleet, names: Sequence[Name]) -> AsyncIterator[dict[Name, list[str]]]:
    """One slow and one dead pod in each of these deployments; yields the addresses of all other pods."""
    bad: list[str] = []
    for name in names:
        slow, dead = fleet.addresses[name][:2]
        fleet.engines.pods[slow].delay, fleet.engines.pods[dead].dead = SLOW_SECONDS, True
        bad += slow, dead
    yield {name: [a for a in addresses if a not in bad] for name, addresses in fleet.addresses.items()}
    fleet.engines.revive(bad)
    await fleet.until_applied()


def _memory(fleet: Fleet) -> Rows:
    steady, peak = fleet.memory("VmRSS") / _MEGA, fleet.peak() / _MEGA
    return [{"memory": name, "megabytes": extent([value])} for name, value in (("steady", steady), ("peak", peak))]


def _seconds(what: str, pods: str, samples: Sequence[float]) -> dict[str, Any]:
    return {
        "change": what, "pods": pods, "changes": len(samples), "seconds": spread(samples), "samples": list(samples)
    }  # fmt: skip


def _requests(per: str, used: Sequence[Requests], times: int) -> dict[str, Any]:
    reads = [(u.total - u.writes) / times for u in used]
    return {"requests per": per, "reads": extent(reads), "writes": extent([u.writes / times for u in used])}


def _words(used: Requests) -> str:
    verbs = ", ".join(f"{count:.0f} {verb}" for verb, count in sorted(used.verbs.items()) if count)
    return f"{used.passes:.0f} passes, {verbs}"


def _memory_words(fleet: Fleet) -> str:
    return f"{fleet.memory('VmRSS') / _MEGA:.0f} MB, at most {fleet.memory('VmHWM') / _MEGA:.0f} MB"
