"""What vLLM resolved, as opposed to what was asked: reads a VllmConfig, and judges it by `support` and `topology`.

`plugin` uses it before the start to build the start-up table, `engine` afterwards for the envelope in the status.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from dsd_runtime import compat, schedule, support, topology
from dsd_runtime.protocol import Envelope

CONFIG_ENV: Final = "DSD_CONFIG"
PREPARED_ENV: Final = "DSD_PREPARED_TOKENS"
SUPERSET_MARK: Final = "_dsd_superset"


def config_path() -> Path | None:
    """The config file that `dsd-serve` was given."""
    value = os.environ.get(CONFIG_ENV)
    return Path(value) if value else None


def parse_prepared(text: str) -> tuple[int, ...]:
    """Parse `0,1,3` into ascending distinct numbers; raises ValueError."""
    values = sorted({int(part) for part in text.split(",")})
    if not 0 <= values[0] <= values[-1] <= schedule.MAX_SPECULATIVE_TOKENS:
        raise ValueError(f"numbers of tokens lie between 0 and {schedule.MAX_SPECULATIVE_TOKENS}")
    return tuple(values)


def refusal(config: Any) -> str | None:
    """Why the schedule of this engine must not change while it runs; None when it may."""
    parallel = config.parallel_config
    if config.speculative_config is None:
        return "the engine runs without speculative decoding: there is no --speculative-config"
    reason = topology.refusal(
        parallel.pipeline_parallel_size,
        parallel.data_parallel_size,
        mixture_of_experts=config.model_config.is_moe,
        hybrid_on_cpu=config.model_config.is_hybrid and config.device_config.device_type == "cpu",
    )
    if reason is not None:
        return reason
    maximum = config.speculative_config.num_speculative_tokens
    if maximum > schedule.MAX_SPECULATIVE_TOKENS:
        return f"{maximum} speculative tokens are more than a schedule can name ({schedule.MAX_SPECULATIVE_TOKENS})"
    judged = verdict(config)
    return None if judged.allowed else next(iter(judged.reasons.values()))


def verdict(config: Any) -> support.Verdict:
    """What `support` says of the method and the runner that vLLM resolved."""
    speculative = config.speculative_config
    return support.judge(
        str(speculative.method),
        runner_of(config),
        speculative.num_speculative_tokens,
        parallel_drafting=bool(speculative.parallel_drafting),
        heterogeneous_vocab=bool(speculative.use_heterogeneous_vocab),
        variant=mtp_variant(speculative),
        series=compat.series(),
    )


def mtp_variant(speculative: Any) -> support.Variant | None:
    """What the checkpoint says about an mtp drafter."""
    if speculative.use_step3p5_mtp():
        return "step3p5_mtp"
    return "multi_module_mtp" if speculative.use_multi_module_mtp() else None


def runner_of(config: Any) -> Literal["V1", "V2"]:
    """The model runner that vLLM resolved."""
    return "V2" if config.use_v2_model_runner else "V1"


def prepared_tokens(maximum: int, allowed: Sequence[int]) -> tuple[int, ...]:
    """The K values to prepare at start: those asked for by the environment, else the default, as far as possible."""
    text = os.environ.get(PREPARED_ENV)
    wanted = parse_prepared(text) if text else schedule.default_prepared_tokens(maximum)
    return tuple(k for k in wanted if k in allowed) or (max(allowed),)


def envelope(config: Any, judged: support.Verdict) -> Envelope:
    """The envelope of an engine with speculative decoding, after VllmConfig has been resolved or just before."""
    speculative = config.speculative_config
    maximum: int = speculative.num_speculative_tokens
    draft = speculative.draft_model_config if speculative.draft_model_config is not config.model_config else None
    return Envelope(
        method=str(speculative.method),
        model_runner=runner_of(config),
        num_speculative_tokens=maximum,
        max_num_seqs=config.scheduler_config.max_num_seqs,
        parallel_drafting=bool(speculative.parallel_drafting),
        drafter_max_model_len=draft.max_model_len if draft is not None else None,
        prepared_tokens=prepared_tokens(maximum, judged.allowed),
        allowed_tokens=judged.allowed,
        verify_only=judged.verify_only,
    )


def as_started(config: Any, envelope: Envelope) -> Envelope:
    """The envelope with the K values that the start-up table really prepared: vLLM drops the table under data
    parallelism, there is none without a config file, and a small max_num_seqs leaves values out of it."""
    table = config.speculative_config.num_speculative_tokens_per_batch_size
    maximum = envelope.num_speculative_tokens
    tokens = {min(k, maximum) for _, _, k in table} if table else {maximum}
    return envelope.model_copy(update={"prepared_tokens": tuple(sorted(tokens))})


def insert_superset(config: Any, table: Sequence[schedule.Triple]) -> None:
    """Set the start-up table, marked as ours: it exists so that vLLM prepares every K, and is no schedule."""
    config.speculative_config.num_speculative_tokens_per_batch_size = list(table)
    setattr(config.speculative_config, SUPERSET_MARK, True)


def has_superset(config: Any) -> bool:
    """Whether the start-up table is the one of `insert_superset`."""
    return bool(getattr(config.speculative_config, SUPERSET_MARK, False))


def identity(config: Any) -> dict[str, str]:
    """The labels model_name and engine, as vLLM sets them on its own metrics."""
    name = config.model_config.served_model_name
    return {"model_name": str(name), "engine": str(config.parallel_config.data_parallel_index)}
