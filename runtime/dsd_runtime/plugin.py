"""The general plugin of vLLM: called in every process of the engine, it sets the hooks.

Idempotent, imports nothing of vLLM where the gate is closed, and never raises into vLLM: without our hooks the engine
serves with vLLM's own static table.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from dsd_runtime import __version__, compat, guards, last_words, resolved, scheduler
from dsd_runtime.engine import static_ranges
from dsd_runtime.faults import utc_now
from dsd_runtime.metrics import show_off
from dsd_runtime.protocol import EngineStatus, ErrorState, ScheduleState, Versions
from dsd_runtime.schedule import from_triples, schedule_hash, superset_triples, to_triples

logger = logging.getLogger("vllm.dsd.plugin")

FAILED: Final = "the plugin failed; see the engine's log"

_registered = False


def register() -> None:
    """Entry point `dsd` of the group vllm.general_plugins."""
    global _registered
    if _registered:
        return
    _registered = True
    try:
        last_words.install()
        _register()
    except Exception:
        logger.exception("the DSD plugin could not be registered; vLLM runs as it is")


def _register() -> None:
    gate = compat.gate()
    if gate.mode == "off":
        logger.warning("the DSD plugin is off: %s. The schedule changes only with a restart", gate.reason)
        show_off({"model_name": "", "engine": "0"})
        return
    _keep_metrics_from_killing()
    compat.add_utilities(UTILITIES)
    compat.wrap_scheduler_class(scheduler.derive)
    # The last, for without the scheduler class its table would be the schedule.
    compat.wrap_config(insert_table)
    guards.apply()


def _keep_metrics_from_killing() -> None:
    # Not at the top: prometheus_client decides when it is imported whether it keeps values in files at all.
    from dsd_runtime import metric_files

    metric_files.install()


def insert_table(config: Any) -> None:
    """Give vLLM a start-up table before it resolves the rest of `config`. Never raises.

    The superset of all K's to prepare where the schedule can change; the schedule itself, as a static table, where not.
    None without a config file, as in a plain `vllm serve` that finds us installed: nothing can change K there, and a
    table costs graphs.
    """
    if resolved.config_path() is None:
        return
    try:
        speculative = config.speculative_config
        if speculative is None or speculative.num_speculative_tokens_per_batch_size is not None:
            return
        if resolved.refusal(config) is not None:
            ranges = static_ranges(config)
            speculative.num_speculative_tokens_per_batch_size = to_triples(ranges) if ranges else None
            return
        envelope = resolved.envelope(config, resolved.verdict(config))
        resolved.insert_superset(config, superset_triples(envelope.prepared_tokens, envelope.max_num_seqs))
    except Exception:
        logger.exception("the start-up table could not be set; vLLM prepares the maximum only")


def _runtime(core: Any) -> Any:
    recorder = getattr(core.scheduler, "dsd", None)
    return recorder.runtime if recorder is not None else None


def _off(core: Any) -> dict[str, str]:
    return {"result": "off", "reason": resolved.refusal(core.vllm_config) or FAILED}


def dsd_status(core: Any) -> dict[str, Any]:
    """Utility: this engine core's EngineStatus."""
    runtime = _runtime(core)
    if runtime is not None:
        return dict(runtime.status())
    return off_status(resolved.refusal(core.vllm_config), core.vllm_config)


def dsd_history(core: Any) -> dict[str, Any] | None:
    """Utility: this engine core's EngineCoreHistory; None where the plugin is off."""
    runtime = _runtime(core)
    return dict(runtime.history()) if runtime is not None else None


def dsd_check(core: Any, body: str) -> dict[str, Any]:
    """Utility: whether this engine core would take the schedule of a PUT."""
    runtime = _runtime(core)
    return dict(runtime.check(body)) if runtime is not None else _off(core)


def dsd_put(core: Any, body: str, change: str) -> dict[str, Any]:
    """Utility: take the schedule of the PUT `change`."""
    runtime = _runtime(core)
    return dict(runtime.put(body, change)) if runtime is not None else _off(core)


def dsd_roll_back(core: Any, change: str) -> bool:
    """Utility: undo the PUT `change`."""
    runtime = _runtime(core)
    return bool(runtime is not None and runtime.roll_back(change))


UTILITIES: Final[Mapping[str, Callable[..., Any]]] = {
    "dsd_status": dsd_status,
    "dsd_history": dsd_history,
    "dsd_check": dsd_check,
    "dsd_put": dsd_put,
    "dsd_roll_back": dsd_roll_back,
}


def off_status(reason: str | None, config: Any = None) -> dict[str, Any]:
    """The status where hot changes are off: the versions, why, and the schedule in force as vLLM's own table, as
    far as `config` (a VllmConfig of any version) tells it."""
    message = reason or FAILED
    return EngineStatus(
        mode="off",
        versions=Versions(runtime=__version__, vllm=compat.gate().vllm_version),
        schedule=static_schedule(config),
        last_error=ErrorState(source="start", message=message, time=utc_now()),
    ).dump()


def static_schedule(config: Any) -> ScheduleState | None:
    """The start-up table as a schedule; None where there is none, or it is the superset, which is no schedule."""
    speculative = getattr(config, "speculative_config", None)
    table = getattr(speculative, "num_speculative_tokens_per_batch_size", None)
    if not table or resolved.has_superset(config):
        return None
    try:
        ranges = from_triples(sorted((start, end, k) for start, end, k in table))
    except (TypeError, ValueError):  # a form of another vLLM
        return None
    return ScheduleState(hash=schedule_hash(ranges), source="start", ranges=ranges)
