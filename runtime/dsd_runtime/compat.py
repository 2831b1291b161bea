"""The one place that knows vLLM from inside: which versions, which hook points, and every private name we use.

`gate` decides from names alone, without importing vLLM, so that `serve` and the plugin in every process come to the
same answer. Another vLLM version is a new entry in SUPPORTED, after the tests with the `engine` marker have passed.
"""

import ast
import functools
import importlib.metadata
import importlib.util
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

logger = logging.getLogger("vllm.dsd.compat")

SUPPORTED: Final = ("0.32",)
"""Series (major.minor) of vLLM whose hook points were tried."""


@dataclass(frozen=True)
class Hook:
    """A method we override, wrap or call, with the parameters we rely on; without `method`, a class attribute."""

    file: str
    owner: str
    name: str
    parameters: tuple[str, ...] | None = ()


SCHEDULER: Final = "v1/core/sched/scheduler.py"
HOOKS: Final = (
    Hook(SCHEDULER, "Scheduler", "_update_after_schedule", ("scheduler_output",)),
    Hook(SCHEDULER, "Scheduler", "update_from_output", ("scheduler_output", "model_runner_output")),
    Hook(SCHEDULER, "Scheduler", "set_pause_state", ("pause_state",)),
    Hook(
        SCHEDULER,
        "Scheduler",
        "make_spec_decoding_stats",
        ("spec_decoding_stats", "num_draft_tokens", "num_accepted_tokens", "num_invalid_spec_tokens", "request_id"),
    ),
    Hook("v1/core/sched/async_scheduler.py", "AsyncScheduler", "_update_after_schedule", ("scheduler_output",)),
    Hook("v1/core/sched/output.py", "SchedulerOutput", "num_spec_tokens_to_schedule", None),
    Hook("v1/core/sched/output.py", "SchedulerOutput", "num_scheduled_tokens", None),
    Hook("v1/core/sched/output.py", "CachedRequestData", "req_ids", None),
    Hook("v1/core/sched/output.py", "CachedRequestData", "resumed_req_ids", None),
    Hook("v1/engine/__init__.py", "EngineCoreOutputs", "scheduler_stats", None),
    Hook("v1/engine/__init__.py", "EngineCoreOutput", "new_token_ids", None),
    Hook("v1/metrics/stats.py", "SchedulerStats", "spec_decoding_stats", None),
    Hook("v1/spec_decode/metrics.py", "SpecDecodingStats", "num_draft_tokens_per_pos", None),
    Hook("v1/spec_decode/metrics.py", "SpecDecodingStats", "num_accepted_tokens_per_pos", None),
    Hook("config/scheduler.py", "SchedulerConfig", "get_scheduler_cls"),
    Hook("config/speculative.py", "SpeculativeConfig", "num_speculative_tokens_per_batch_size", None),
    Hook("config/speculative.py", "SpeculativeConfig", "parallel_drafting", None),
    Hook("config/speculative.py", "SpeculativeConfig", "use_heterogeneous_vocab", None),
    Hook("config/speculative.py", "SpeculativeConfig", "use_step3p5_mtp"),
    Hook("config/speculative.py", "SpeculativeConfig", "use_multi_module_mtp"),
    Hook("config/vllm.py", "VllmConfig", "__post_init__"),
    Hook("config/vllm.py", "VllmConfig", "use_v2_model_runner"),
    Hook("v1/engine/core.py", "EngineCore", "__init__", ("vllm_config",)),
    Hook("v1/engine/core_client.py", "AsyncMPClient", "call_utility_all_async", ("method",)),
    Hook("v1/engine/async_llm.py", "AsyncLLM", "shutdown", ("timeout",)),
    Hook("v1/engine/output_processor.py", "OutputProcessor", "propagate_error", ("e",)),
    Hook("plugins/endpoint_plugins/interface.py", "EndpointPlugin", "attach_router", ("app",)),
    Hook("plugins/endpoint_plugins/interface.py", "EndpointPlugin", "init_state", ("engine_client", "state", "args")),
)


@dataclass(frozen=True)
class Gate:
    """Whether we hook into this vLLM. `reason` says why not."""

    mode: Literal["on", "off"]
    vllm_version: str
    reason: str = ""


def missing_hooks(root: Path) -> list[str]:
    """The hook points that the vLLM sources under `root` lack."""
    trees: dict[str, dict[str, ast.ClassDef]] = {}
    missing = []
    for hook in HOOKS:
        if hook.file not in trees:
            trees[hook.file] = _classes(root / hook.file)
        if not _has(trees[hook.file].get(hook.owner), hook):
            missing.append(f"{hook.owner}.{hook.name}")
    return missing


def _classes(path: Path) -> dict[str, ast.ClassDef]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _has(owner: ast.ClassDef | None, hook: Hook) -> bool:
    for node in owner.body if owner else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == hook.name:
            names = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            return hook.parameters is not None and names.issuperset(hook.parameters)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == hook.name:
            return hook.parameters is None
    return False


@functools.cache
def gate() -> Gate:
    """Decide once per process, from the installed distribution `vllm`."""
    try:
        version = importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        return Gate("off", "", "vLLM is not installed; `pip install dsd-runtime[vllm]` brings it")
    if series_of(version) not in SUPPORTED:
        known = ", ".join(f"{series}.x" for series in SUPPORTED)
        return Gate("off", version, f"vLLM {version} is not known to this plugin (known: {known})")
    spec = importlib.util.find_spec("vllm")
    roots = spec.submodule_search_locations if spec else None
    missing = missing_hooks(Path(roots[0])) if roots else ["the package vllm"]
    if missing:
        return Gate("off", version, f"vLLM {version} lacks {', '.join(missing)}")
    return Gate("on", version)


def series_of(version: str) -> str:
    """The series (major.minor) of a version."""
    return ".".join(version.split(".")[:2])


def series() -> str:
    """The series of the installed vLLM, by which `support` judges."""
    return series_of(gate().vllm_version)


def wrap_config(before: Callable[[Any], None]) -> None:
    """Call `before(vllm_config)` ahead of each `VllmConfig.__post_init__`: max_num_seqs is resolved by then, and
    everything that depends on the start-up table (graph sizes, runner checks) is still to come."""
    from vllm.config import VllmConfig

    original = VllmConfig.__post_init__

    @functools.wraps(original)
    def post_init(self: Any, *args: Any, **kwargs: Any) -> None:
        before(self)
        original(self, *args, **kwargs)

    VllmConfig.__post_init__ = post_init


def wrap_scheduler_class(derive: Callable[[type[Any]], type[Any]]) -> None:
    """Let `derive` subclass whatever scheduler class vLLM, a platform or the user chose."""
    from vllm.config import SchedulerConfig

    original = SchedulerConfig.get_scheduler_cls

    @functools.wraps(original)
    def get_scheduler_cls(self: Any) -> type[Any]:
        return derive(original(self))

    SchedulerConfig.get_scheduler_cls = get_scheduler_cls


def add_utilities(methods: Mapping[str, Callable[..., Any]]) -> None:
    """Add methods to EngineCore; the front end calls them by name, between two steps."""
    from vllm.v1.engine.core import EngineCore

    for name, method in methods.items():
        setattr(EngineCore, name, method)


async def call_engines(engine_client: Any, method: str, *arguments: Any) -> list[Any]:
    """Call a utility on every engine core that this front end manages; one result for each."""
    results: list[Any] = await engine_client.engine_core.call_utility_all_async(method, *arguments)
    return results


def engine_count(engine_client: Any) -> int:
    """How many engine cores this front end manages; 0 without an engine."""
    return len(engine_client.engine_core.core_engines) if engine_client is not None else 0
