"""Ends the streams that are still open when an API server shuts its engine down.

`AsyncLLM.shutdown` of vLLM 0.32 ends the engine cores and then cancels its output handler, which alone would tell the
open streams that nothing more comes. Whether the handler gets to that first is a race; where it does not, the streams
stay open, the HTTP server waits for them without a limit, and the process lives until the last client has gone.
`routes` calls this in every API server.
"""

import asyncio
import functools
from typing import Any


def end_with_the_engine(client: Any) -> None:
    """Let `client.shutdown` (an AsyncLLM, which may be called from any thread) end every open stream with an error.

    Call it from the event loop that serves. Streams that have ended by then, as those do that `--shutdown-timeout`
    leaves the time to, are not touched.
    """
    loop, original = asyncio.get_running_loop(), client.shutdown

    @functools.wraps(original)
    def shutdown(timeout: float | None = None) -> None:
        try:
            original(timeout=timeout)
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_end_all, client)

    client.shutdown = shutdown


def _end_all(client: Any) -> None:
    from vllm.v1.engine.exceptions import EngineDeadError

    client.output_processor.propagate_error(EngineDeadError(suppress_context=True))
