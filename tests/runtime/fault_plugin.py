"""A general plugin of vLLM that only tests load: it lets one engine core misbehave in the middle of a PUT.

What cannot be made from outside: a core that agreed to a schedule and then refuses it, fails, or stops answering just
after it has taken it. The file that DSD_TEST_FAULT names says which; without the file nothing happens.
"""

import functools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ENV = "DSD_TEST_FAULT"
ENGINE = 1
SECONDS = 6.0
"""In place of routes.ENGINE_TIMEOUT_SECONDS, so that a test need not wait so long."""


def install(folder: Path) -> dict[str, str]:
    """Make the plugin known to the processes that get the returned environment; the fault file is `folder`/fault."""
    metadata = folder / "dsd_test_fault-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dsd-test-fault\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[vllm.general_plugins]\ndsd_test_fault = tests.runtime.fault_plugin:register\n"
    )
    root = Path(__file__).parents[2]
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(root)]), ENV: str(folder / "fault")}


def register() -> None:
    """Entry point."""
    from vllm.v1.engine.core import EngineCore

    from dsd_runtime import plugin, routes

    plugin.register()
    routes.ENGINE_TIMEOUT_SECONDS = SECONDS  # type: ignore[misc]
    original = EngineCore.dsd_put

    @functools.wraps(original)
    def dsd_put(core: Any, body: str, change: str) -> Mapping[str, Any]:
        fault = wanted(core)
        if fault == "refuse":
            return {"result": "invalid", "problems": [{"field": "ranges", "message": "refused by the test"}]}
        if fault == "raise":
            raise RuntimeError("raised by the test")
        answer: Mapping[str, Any] = original(core, body, change)
        while wanted(core) == "hang":
            time.sleep(0.05)
        return answer

    EngineCore.dsd_put = dsd_put


def wanted(core: Any) -> str:
    """The fault that this engine core shall have now; empty for none."""
    if core.vllm_config.parallel_config.data_parallel_index != ENGINE:
        return ""
    try:
        return Path(os.environ[ENV]).read_text()
    except OSError:
        return ""
