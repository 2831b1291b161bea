"""How fast a new schedule reaches every pod: `python -m bench.hotswap` (`make bench-hotswap`).

Three replicas of a tiny engine, changed over and over, with and without load in turn. Uses the test bed in
`tools.testbed`; `results` has the format, `report` makes the page.
"""

import argparse
import asyncio
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final

import aiohttp

from bench.results import Required, Result, environment, spread, write
from dsd_runtime.protocol import STATUS_PATH, EngineStatus
from dsd_runtime.schedule import Ranges, from_triples, schedule_hash
from tools.testbed import manifests
from tools.testbed.engine import Engine, in_use, pod_url
from tools.testbed.handle import CHANGE_TIMEOUT, START_TIMEOUT, Handle, identity
from tools.testbed.install import Installation, install
from tools.testbed.load import Answer, Load
from tools.testbed.site import site
from tools.testbed.workload import DRAFTERS, TARGET, prompts, schedules

NAME: Final = "hotswap"
NAMESPACE: Final = "dsd-bench"
REPLICAS: Final = 3
BLOCK: Final = 10
"""Changes in a row under one condition."""

STREAMS: Final = 3
NEW_TOKENS: Final = 32
POLL_SECONDS: Final = 0.01

METHOD: Final = " ".join(
    f"""
    A DSDDeployment with {REPLICAS} replicas of a tiny random Llama (float32, ngram drafter) runs on the local one-node
    Kubernetes, operator and engines on the same cores. The schedule is changed by a merge patch through the API server,
    each time to another one. The clock starts when the API server has answered the patch and stops when the last of the
    pods reports, in every engine core, the hash of the new schedule; each pod is asked directly every
    {POLL_SECONDS * 1000:g} ms, so a figure may be too long by that and one request. The next change follows when the
    resource's status shows all pods. Blocks of {BLOCK} changes with {STREAMS} streaming clients (one per pod, greedy,
    {NEW_TOKENS} tokens a request, one request after the other) and without load take turns. A request counts as failed
    if it does not end with status 200 and all its tokens. No pod may be replaced and no engine restarted meanwhile.
    """.split()
)


def measure(handle: Handle, engines: Sequence[Engine], schedule: Ranges) -> float:
    """Change the schedule; seconds from the API server's answer until the last pod acknowledges."""
    handle.set_schedule(schedule)
    answered = time.perf_counter()
    acknowledged = asyncio.run(_last_acknowledgement([e.url for e in engines], schedule_hash(schedule)))
    handle.wait_applied(schedule)
    return acknowledged - answered


async def _last_acknowledgement(urls: Sequence[str], wanted: str) -> float:
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session, asyncio.timeout(CHANGE_TIMEOUT):
        return max(await asyncio.gather(*(_acknowledgement(session, url, wanted) for url in urls)))


async def _acknowledgement(session: aiohttp.ClientSession, url: str, wanted: str) -> float:
    while True:
        async with session.get(url + STATUS_PATH) as answer:
            status = EngineStatus.model_validate_json(await answer.read())
        if in_use(status) == {wanted}:
            return time.perf_counter()
        await asyncio.sleep(POLL_SECONDS)


def run(handle: Handle, engines: Sequence[Engine], changes: int) -> tuple[list[float], list[float], list[Answer]]:
    """`changes` with and as many without load, in blocks that take turns: (loaded, idle, the load's answers)."""
    wanted = schedules(NAME)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    answers: list[Answer] = []
    for block in range(2 * changes // BLOCK):
        loaded = block % 2 == 0
        with load_on(engines) if loaded else nullcontext() as load:
            seconds[loaded] += [measure(handle, engines, s) for s in itertools.islice(wanted, BLOCK)]
        answers += load.answers if load else []
        print(f"block {block + 1}: median {spread(seconds[loaded][-BLOCK:])['p50'] * 1000:.0f} ms", flush=True)
    return seconds[True], seconds[False], answers


def load_on(engines: Sequence[Engine]) -> Load:
    """One streaming client per pod."""
    return Load([engine.url for engine in engines], prompts(12), STREAMS, NEW_TOKENS)


def row(condition: str, seconds: Sequence[float]) -> dict[str, Any]:
    """One row of `data`: the spread, and every measured value in seconds."""
    return {"condition": condition, "changes": len(seconds), "seconds": spread(seconds), "samples": list(seconds)}


def required_of(data: Sequence[dict[str, Any]]) -> tuple[Required, ...]:
    """What this benchmark must show, computed from `data`."""
    rows = {entry["condition"]: entry for entry in data}
    loaded, requests = rows["load"], rows["requests"]
    figures = spread(loaded["samples"])
    return (
        Required.of("changes", len(loaded["samples"]), "changes", ">=", 100),
        Required.of("p50 until the last pod acknowledges", figures["p50"], "s", "<=", 0.3),
        Required.of("p95 until the last pod acknowledges", figures["p95"], "s", "<=", 1.0),
        Required.of("requests under load", requests["requests"], "requests", ">=", 100),
        Required.of("failed requests under load", requests["failed"] / requests["requests"], "share", "<=", 0.0),
    )


@contextmanager
def engines_up(installation: Installation) -> Iterator[Handle]:
    """The namespace with the deployment under measurement, Ready; removed afterwards."""
    kube, first = installation.kube, from_triples([(1, 64, 2)])
    with site(kube, NAMESPACE):
        kube.apply(manifests.dsd_deployment(NAMESPACE, NAME, TARGET, DRAFTERS["ngram"], first, REPLICAS))
        handle = Handle(kube, NAMESPACE, NAME)
        handle.wait_ready(REPLICAS * START_TIMEOUT)
        yield handle


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result; 1 when a required number is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench.hotswap", description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=120, help="changes per condition (default: %(default)s)")
    options = parser.parse_args(arguments)
    installation = install()
    with engines_up(installation) as handle:
        before = {identity(pod) for pod in handle.pods()}
        engines = [Engine(pod_url(pod["status"]["podIP"])) for pod in handle.pods()]
        versions = engines[0].status().versions
        loaded, idle, answers = run(handle, engines, options.changes)
        if {identity(pod) for pod in handle.pods()} != before:
            raise RuntimeError("a pod was replaced or an engine restarted during the measurement")
    failures = [answer.error for answer in answers if answer.error]
    requests = {"condition": "requests", "requests": len(answers), "failed": len(failures), "errors": failures[:10]}
    data = (row("load", loaded), row("idle", idle), requests)
    software = {"kubernetes": installation.kube.version(), "vllm": versions.vllm, "dsd-runtime": versions.runtime}
    result = Result(environment=environment(software), method=METHOD, data=data, required=required_of(data))
    print(f"wrote {write(NAME, result)}")
    for r in result.required:
        print(f"{'met ' if r.met else 'MISS'} {r.name}: {r.value:.3f} {r.unit} {r.relation} {r.threshold}")
    return 0 if all(entry.met for entry in result.required) else 1


if __name__ == "__main__":
    sys.exit(main())
