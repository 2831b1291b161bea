"""A general plugin of vLLM that only tests load: the output handler always loses the race in `AsyncLLM.shutdown`.

It is cancelled before the engine cores end, so nobody tells the open streams (`dsd_runtime.open_streams` says more).
Left to chance, a test would pass most of the time with or without what it is for.
"""

import functools
import os
import time
from pathlib import Path
from typing import Any


def install(folder: Path) -> dict[str, str]:
    """Make the plugin known to the processes that get the returned environment."""
    metadata = folder / "dsd_test_race-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dsd-test-race\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[vllm.general_plugins]\ndsd_test_race = tests.runtime.race_plugin:register\n"
    )
    root = Path(__file__).parents[2]
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(root), *filter(None, [os.environ.get("PYTHONPATH")])])}


def register() -> None:
    """Entry point."""
    from vllm.v1.engine.async_llm import AsyncLLM

    original = AsyncLLM.shutdown

    @functools.wraps(original)
    def shutdown(client: Any, timeout: float | None = None) -> None:
        handler = client.output_handler
        if handler is not None and not handler.done():
            handler.get_loop().call_soon_threadsafe(handler.cancel)
            while not handler.done():
                time.sleep(0.01)
        original(client, timeout)

    AsyncLLM.shutdown = shutdown
