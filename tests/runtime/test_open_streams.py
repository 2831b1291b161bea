"""Streams that are open when vLLM ends its engine: they end, whoever wins the race in `AsyncLLM.shutdown`.

The race is lost here on purpose: the output handler is cancelled before it has told anybody. The whole server, with
real streams, is in test_lifetime.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime.open_streams import end_with_the_engine

pytestmark = pytest.mark.engine


class Processor:
    """vLLM's own, with one open stream."""

    def __init__(self) -> None:
        """A real OutputProcessor would need a tokenizer; these two parts of it are what counts."""
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector

        self.queue = RequestOutputCollector(RequestOutputKind.DELTA, "r")
        self.request_states = {"r": SimpleNamespace(queue=self.queue)}
        self.propagate_error = OutputProcessor.propagate_error.__get__(self)


class Client:
    """An AsyncLLM whose handler has no time to say a word."""

    def __init__(self, error: Exception | None = None) -> None:
        self.output_processor = Processor()
        self.timeouts: list[float | None] = []
        self.error = error

    def shutdown(self, timeout: float | None = None) -> None:
        """End the engine cores; nobody is told."""
        self.timeouts.append(timeout)
        if self.error:
            raise self.error


async def ends(client: Any, **given: float) -> None:
    """Shut down from another thread, as vLLM does, and wait for the open stream."""
    from vllm.v1.engine.exceptions import EngineDeadError

    stream = asyncio.create_task(client.output_processor.queue.get())
    await asyncio.sleep(0)
    await asyncio.gather(asyncio.to_thread(client.shutdown, **given), return_exceptions=True)
    with pytest.raises(EngineDeadError):
        await asyncio.wait_for(stream, 30)


async def test_alone_it_would_wait_for_ever() -> None:
    client = Client()
    stream = asyncio.create_task(client.output_processor.queue.get())
    await asyncio.to_thread(client.shutdown)
    done, _ = await asyncio.wait({stream}, timeout=0.2)
    stream.cancel()
    assert done == set()


async def test_open_stream_ends() -> None:
    client = Client()
    end_with_the_engine(client)
    await ends(client, timeout=7)
    assert client.timeouts == [7]


async def test_open_stream_ends_even_where_the_engine_could_not_be_ended() -> None:
    client = Client(RuntimeError("no such process"))
    end_with_the_engine(client)
    await ends(client)


async def test_vllm_calls_it_that_way() -> None:
    """By name, on the client that `init_state` gets; another vLLM may not."""
    import inspect

    from vllm.entrypoints.launchers import launcher
    from vllm.v1.engine.async_llm import AsyncLLM

    assert list(inspect.signature(AsyncLLM.shutdown).parameters) == ["self", "timeout"]
    text = inspect.getsource(launcher.serve_http)
    assert "engine_client = app.state.engine_client" in text
    assert "partial(engine_client.shutdown, timeout=timeout)" in text
