"""The operator's HTTP endpoints: /metrics on one port, /healthz and /readyz on another, on all addresses.

Served from the operator's own event loop, so that a blocked loop fails its probe.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from dsd_operator.health import Health
from dsd_operator.metrics import Metrics

_STOP_SECONDS = 1.0


@asynccontextmanager
async def serving(metrics: Metrics, health: Health, metrics_port: int, health_port: int) -> AsyncIterator[None]:
    """Serve while inside; OSError if a port is taken."""

    async def scrape(_: web.Request) -> web.Response:
        body, content_type = metrics.render()
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def alive(_: web.Request) -> web.Response:
        return _verdict(health.faults())

    async def ready(_: web.Request) -> web.Response:
        reason = health.unready()
        return _verdict([reason] if reason else [])

    async with AsyncExitStack() as stack:
        await _serve(stack, metrics_port, web.get("/metrics", scrape))
        await _serve(stack, health_port, web.get("/healthz", alive), web.get("/readyz", ready))
        yield


def _verdict(faults: list[str]) -> web.Response:
    return web.Response(status=503 if faults else 200, text="\n".join(faults or ["ok"]) + "\n")


async def _serve(stack: AsyncExitStack, port: int, *routes: web.RouteDef) -> None:
    application = web.Application()
    application.add_routes(routes)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_STOP_SECONDS)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, port=port).start()
