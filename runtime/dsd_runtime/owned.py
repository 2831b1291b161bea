"""What a user may not pass to the engine directly, and what to write instead.

Options and variables that a field of the resource or the operator itself owns, options that vLLM no longer has, and
topologies that are not supported. `options` finds them in every spelling; the CRD's rules are generated from the
groups.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dsd_runtime.schedule import Problem
from dsd_runtime.topology import MOE_DEADLOCK, PIPELINE_PARALLEL
from dsd_runtime.vllm_options import OPTIONS


@dataclass(frozen=True)
class OwnedGroup:
    """Options that are refused for one common reason, by their canonical spelling."""

    options: tuple[str, ...]
    message: str


def _starting(*prefixes: str) -> tuple[str, ...]:
    return tuple(name for name in OPTIONS if name.startswith(prefixes))


TYPED_OPTIONS: Final[Mapping[str, str]] = {
    "--model": "spec.model.name",
    "--served-model-name": "spec.model.servedNames",
    "--revision": "spec.model.revision",
    "--hf-token": "spec.model.tokenSecretRef",
    "--max-num-seqs": "spec.engine.maxNumSeqs",
    "--dtype": "spec.engine.dtype",
    "--quantization": "spec.engine.quantization",
    "--tensor-parallel-size": "spec.engine.tensorParallelSize",
    "--gpu-memory-utilization": "spec.engine.gpuMemoryUtilization",
    "--shutdown-timeout": "spec.rollout.drainTimeoutSeconds",
}
"""Options with a field of their own; --max-model-len is one too, but has a value that no field can express."""


def _typed(parent: str) -> tuple[str, ...]:
    return tuple(name for name, field in TYPED_OPTIONS.items() if field.startswith(parent))


OWNED_GROUPS: Final = (
    OwnedGroup(
        ("--speculative-config", "--spec-method", "--spec-model", "--spec-tokens"),
        "speculative decoding is described by spec.drafter and spec.schedule; remove this argument",
    ),
    OwnedGroup(
        _typed("spec.model."),
        "the model is described by spec.model (name, servedNames, revision, tokenSecretRef); remove this argument",
    ),
    OwnedGroup(
        _typed("spec.engine."),
        "this has a field of its own in spec.engine (maxNumSeqs, dtype, quantization, tensorParallelSize, "
        "gpuMemoryUtilization); use the field",
    ),
    OwnedGroup(
        _typed("spec.rollout."),
        "the pod's grace period must be longer than this, or running requests are cut; set "
        "spec.rollout.drainTimeoutSeconds, which both follow",
    ),
    OwnedGroup(
        (
            *(
                "--host",
                "--port",
                "--uds",
                "--root-path",
                "--headless",
                "--grpc",
                "--grpc-port",
                "--enable-ssl-refresh",
            ),
            *_starting("--ssl-"),
        ),
        "where and how the engine listens is the operator's: probes, the Service and schedule changes rely on plain "
        "HTTP on its port; remove this argument",
    ),
    OwnedGroup(("--config",), "a config file could set anything that has a field here; write the options one by one"),
    OwnedGroup(("--help",), "this prints a help text and ends instead of serving; remove it"),
    OwnedGroup(
        ("--pipeline-parallel-size",),
        f"{PIPELINE_PARALLEL.reason}; use spec.engine.tensorParallelSize",
    ),
    OwnedGroup(
        _starting("--data-parallel-", "--dp-supervisor-"),
        f"data parallelism is not supported ({MOE_DEADLOCK}); use spec.replicas for more engines",
    ),
    OwnedGroup(
        ("--nnodes", "--node-rank", "--master-addr", "--master-port"),
        "each pod of an engine over several nodes gets these from the operator; use spec.engine.nodes",
    ),
    OwnedGroup(
        ("--scheduler-cls",),
        "a scheduler class of your own would decide K against the schedule; remove this argument",
    ),
)
"""Refused in extraArgs whatever their value."""

OWNED_OPTIONS: Final[Mapping[str, str]] = {name: group.message for group in OWNED_GROUPS for name in group.options}
"""Canonical option -> why it is refused and what to do."""

MAX_MODEL_LEN: Final = "--max-model-len"
AUTO_VALUES: Final = ("auto", "-1")
"""Values of --max-model-len that no field can express, so they are allowed in extraArgs."""

EXECUTOR_BACKEND: Final = "--distributed-executor-backend"
EXECUTOR_BACKENDS: Final = ("mp", "uni")
"""Executors that stay inside one pod."""

DEAD_OPTIONS: Final[Mapping[str, str]] = {
    "--speculative-model": "set spec.drafter.model",
    "--speculative-model-quantization": "put quantization into spec.drafter.parameters",
    "--speculative-draft-tensor-parallel-size": "set spec.drafter.tensorParallelSize",
    "--speculative-max-model-len": "put max_model_len into spec.drafter.parameters",
    "--speculative-disable-by-batch-size": "give the large batch sizes numSpeculativeTokens 0 in spec.schedule",
    "--num-speculative-tokens": "set spec.drafter.numSpeculativeTokens",
    "--ngram-prompt-lookup-max": "set spec.drafter.promptLookup.max",
    "--ngram-prompt-lookup-min": "set spec.drafter.promptLookup.min",
    "--spec-decoding-acceptance-method": "remove it; the lossy typical sampler is gone",
    "--use-v2-block-manager": "remove it",
    "--num-scheduler-steps": "remove it",
    "--swap-space": "remove it",
    "--device": "remove it; the image decides",
    "--disable-log-requests": "write --no-enable-log-requests",
    "--enable-reasoning": "write --reasoning-parser=NAME",
    "--guided-decoding-backend": "write --structured-outputs-config.backend=NAME",
    "--task": "write --runner and --convert",
    "--rope-scaling": "write --hf-overrides",
    "--max-seq-len-to-capture": "write --max-cudagraph-capture-size",
    "--cuda-graph-sizes": "write --cudagraph-capture-sizes",
}
"""Options of older vLLM versions -> what to do instead."""

OWN_PREFIX: Final = "--dsd"
"""Options of dsd-serve itself."""

OWNED_ENV: Final[Mapping[str, str]] = {
    "VLLM_USE_V2_MODEL_RUNNER": "set spec.engine.modelRunner instead",
    "VLLM_PLUGINS": "the operator loads its plugins through it; set it in the image instead, where it is kept",
    "PROMETHEUS_MULTIPROC_DIR": "the operator's metrics are collected through it",
    "prometheus_multiproc_dir": "the operator's metrics are collected through it",
    "VLLM_PORT": "vLLM's internal port; it is not the HTTP port and a wrong value stops the engine",
    "VLLM_USE_RUST_FRONTEND": "the Rust front end does not load the routes that change the schedule",
    "VLLM_DP_SIZE": "one pod is one engine; use spec.replicas for more engines",
    "VLLM_DP_RANK": "one pod is one engine; use spec.replicas for more engines",
    "VLLM_DP_RANK_LOCAL": "one pod is one engine; use spec.replicas for more engines",
    "VLLM_DP_MASTER_IP": "one pod is one engine; use spec.replicas for more engines",
    "VLLM_DP_MASTER_PORT": "one pod is one engine; use spec.replicas for more engines",
}
"""Variables a user may not set -> why, or what to do instead."""

OWNED_ENV_PREFIX: Final = "DSD_"
"""Every variable that begins so is the runtime's own."""


def env_problems(names: Iterable[str], field: str = "spec.engine.env") -> list[Problem]:
    """The names among `names` that the operator sets itself; `field` is the path that the problems name."""
    return [Problem(f"{field}[name={n}]", f"{n} may not be set here: {m}") for n in names if (m := _env_message(n))]


def _env_message(name: str) -> str | None:
    if name.startswith(OWNED_ENV_PREFIX):
        return f"names that begin with {OWNED_ENV_PREFIX} belong to the runtime"
    return OWNED_ENV.get(name)
