"""The wiring: builds every part once, hands each what it needs, runs them until told to stop."""

import asyncio
import logging
import random
import signal
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

import kopf

from dsd_operator import __version__
from dsd_operator.cluster import resources
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.keys import Keys
from dsd_operator.cluster.places import Places
from dsd_operator.cluster.tokens import Tokens
from dsd_operator.engine.client import EngineClient
from dsd_operator.handlers import framework, watch
from dsd_operator.health import Health
from dsd_operator.metrics import Metrics
from dsd_operator.reconcile.applier import Applier
from dsd_operator.reconcile.delivery import Courier
from dsd_operator.reconcile.events import Recorder
from dsd_operator.reconcile.push import Pusher
from dsd_operator.reconcile.queue import Backoff, WorkQueue
from dsd_operator.reconcile.reconciler import Reconciler
from dsd_operator.reconcile.resync import Resync
from dsd_operator.reconcile.wakeups import Wakeups
from dsd_operator.reconcile.watches import Watches
from dsd_operator.reconcile.workers import Workers
from dsd_operator.render.neighbours import Neighbours
from dsd_operator.server import serving
from dsd_operator.settings import Settings

_LOOK_FOR_CRD_SECONDS: Final = 2.0

_LONGEST_PAUSE_SECONDS: Final = 15.0
"""Before another start. The kubelet's probes find nobody meanwhile, and they are patient for longer."""

_LOOK_SHARE: Final = 0.3
"""Of the resync's interval: less than lies between any two of its passes over one resource, however they are spread."""

_STEADY_SECONDS: Final = 60.0
"""Watches that lived this long were no failed start."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parts:
    """Everything that lives as long as the process."""

    client: Client
    places: Places
    engines: EngineClient
    metrics: Metrics
    wakeups: Wakeups
    applier: Applier
    pusher: Pusher
    workers: Workers
    resync: Resync
    health: Health


def build(settings: Settings, clock: Callable[[], float], loop: asyncio.AbstractEventLoop) -> Parts:
    """Build all parts; nothing is opened or started yet."""
    metrics = Metrics(__version__)
    client, engines = Client(metrics.api_request), EngineClient()
    queue, watches = WorkQueue(loop), Watches(clock)
    wakeups = Wakeups(queue, watches)
    tokens = Tokens(client, settings.namespace, settings.service_account, clock)
    keys = Keys(client, clock)
    applier = Applier(client, queue.add)
    pusher = Pusher(Courier(engines, tokens, keys), clock, queue.add)
    recorder = Recorder(client, socket.gethostname(), _now, clock)
    reconciler = Reconciler(
        client,
        keys,
        tokens,
        applier,
        pusher,
        recorder,
        metrics,
        watches,
        settings.runtime_image,
        settings.fs_group,
        _neighbours(settings),
        _now,
        clock,
        settings.resync_seconds * _LOOK_SHARE,
    )
    workers = Workers(queue, wakeups, reconciler, metrics, clock)
    health = Health(clock, watches, workers.longest_pass)
    workers.finished = health.finished
    metrics.watch_queue(lambda: queue.depth)
    places = Places(client, settings.watch_namespaces)
    resync = Resync(client, queue, wakeups, places, settings.resync_seconds)
    return Parts(client, places, engines, metrics, wakeups, applier, pusher, workers, resync, health)


class WatchesLost(Exception):  # noqa: N818 - what happened, not a fault of ours
    """kopf gave up its watches: an answer that it does not retry. The text says which."""


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT; raises what makes it impossible to go on.

    Without its watches it starts anew, all of it: kopf cancels whatever task is younger than its own when it ends. The
    kubelet would do so too, and wait longer each time.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    backoff, failures = Backoff(limit=_LONGEST_PAUSE_SECONDS), 0
    while not stop.is_set():
        _on_signals(loop, stop)
        began = loop.time()
        try:
            await _run_once(settings, loop, stop)
            break
        except WatchesLost as error:
            failures = 1 if loop.time() - began > _STEADY_SECONDS else failures + 1
            delay = backoff.delay(failures, random.random())
            _log.warning("The watches ended, starting anew in %.1f s: %s", delay, error)
        _on_signals(loop, stop)
        await _before(stop, asyncio.sleep(delay))
    _log.info("Stopped")


async def _run_once(settings: Settings, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    parts = build(settings, loop.time, loop)
    async with AsyncExitStack() as stack:
        for opened in (parts.client, parts.engines):
            await opened.open()
            stack.push_async_callback(opened.close)
        async with serving(parts.metrics, parts.health, settings.metrics_port, settings.health_port):
            places = ", ".join(settings.watch_namespaces) or "all namespaces"
            _log.info("dsd-operator %s serves %s", __version__, places)
            if await _before(stop, _prepare(parts)):
                await _operate(parts, settings, loop, stop)


async def _operate(parts: Parts, settings: Settings, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    anew = asyncio.create_task(parts.places.until_more(), name="places")
    own = [
        anew,
        asyncio.create_task(parts.workers.run(settings.workers), name="workers"),
        asyncio.create_task(_sync(parts), name="resync"),
        asyncio.create_task(parts.health.beat(), name="heartbeat"),
        asyncio.create_task(stop.wait(), name="stop"),
    ]
    halt, started = asyncio.Event(), asyncio.Event()
    # Last: kopf takes every task that is younger than its own for one of its own, and cancels it in the end.
    watching = asyncio.create_task(_watch(parts, halt, started), name="watches")
    try:
        await asyncio.wait([asyncio.create_task(started.wait()), watching], return_when=asyncio.FIRST_COMPLETED)
        _on_signals(loop, stop)  # kopf has put its own handlers in place of ours
        done, _ = await asyncio.wait([*own, watching], return_when=asyncio.FIRST_COMPLETED)
        for task in done - {watching}:
            task.result()  # raises what it died of
        if watching in done and not stop.is_set():
            raise WatchesLost(str(watching.exception() or "without a word"))
        if not (stop.is_set() or anew.done()):
            raise RuntimeError(f"{', '.join(task.get_name() for task in done)} ended by itself")
    finally:
        for task in own:
            task.cancel()
        parts.applier.close()
        parts.pusher.close()
        await asyncio.gather(*own, return_exceptions=True)
        halt.set()
        await asyncio.gather(watching, return_exceptions=True)


async def _prepare(parts: Parts) -> None:
    """Wait for what kopf looks for only once."""
    await _wait_for_crd(parts.client)
    await parts.places.find()


async def _sync(parts: Parts) -> None:
    parts.health.expect(await parts.resync.first())
    await parts.resync.run()


async def _watch(parts: Parts, halt: asyncio.Event, started: asyncio.Event) -> None:
    registry = framework.registry()
    watch.register(registry, parts.wakeups)
    await kopf.operator(
        registry=registry,
        settings=framework.settings(),
        # Unused without peering; kopf would make it of the user's name, which an arbitrary user id does not have.
        identity=cast(Any, socket.gethostname()),
        standalone=True,
        clusterwide=not parts.places.chosen,
        namespaces=parts.places.served,
        stop_flag=halt,
        ready_flag=started,
    )


async def _wait_for_crd(client: Client) -> None:
    """Wait until the API server serves DSDDeployments: kopf looks for them only once."""
    told = False
    while True:
        try:
            if await client.serves(resources.DSD_DEPLOYMENT):
                return
            problem = "the CRD is not installed"
        except ApiError as error:
            problem = error.message
        if not told:
            _log.warning("Waiting for %s.%s: %s", resources.DSD_DEPLOYMENT.plural, "dsd-operator.io", problem)
            told = True
        await asyncio.sleep(_LOOK_FOR_CRD_SECONDS)


async def _before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Whether the work ended before the stop came; its exceptions pass."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        return False
    working.result()
    return True


def _on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)


def _neighbours(settings: Settings) -> Neighbours:
    return Neighbours(settings.namespace, settings.pod_labels, settings.monitoring_peers)


def _now() -> datetime:
    return datetime.now(UTC)
