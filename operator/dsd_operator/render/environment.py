"""Environment of the engine container: ours first, then the user's in the user's order.

Everything that vLLM and its libraries write goes below HOME, /tmp, the run directory or the cache's claim, all of them
volumes: the root file system is read-only and the user id may be one without a passwd entry (OpenShift).
"""

from typing import Any, Final

from dsd_operator.api import Spec
from dsd_operator.api.cache import Cache
from dsd_operator.api.engine import EnvVar
from dsd_operator.render.merge import Item, override_env
from dsd_runtime.protocol import DRAIN_TIMEOUT_ENV, LEAVING_ENV

HOME: Final = "/home/dsd"
RUN_DIRECTORY: Final = "/run/dsd"
LEAVING: Final = f"{RUN_DIRECTORY}/leaving"
"""A file that is there once the pod is about to end."""

CACHE_DIRECTORY: Final = "/cache"
"""Where the claim of `spec.cache` is mounted."""

_PATHS: Final = {
    "HOME": HOME,
    # Without a passwd entry getpass.getuser() needs it; torch asks it for the name of its cache directory.
    "USER": "dsd",
    "TMPDIR": "/tmp",
    "XDG_CONFIG_HOME": f"{HOME}/.config",
    "VLLM_CONFIG_ROOT": f"{HOME}/.config/vllm",
}

_CACHES: Final = {
    "XDG_CACHE_HOME": "",
    "HF_HOME": "/huggingface",
    "VLLM_CACHE_ROOT": "/vllm",
    "TRITON_CACHE_DIR": "/triton",
    "TORCHINDUCTOR_CACHE_DIR": "/torchinductor",
    "FLASHINFER_WORKSPACE_BASE": "/flashinfer",
    "DG_JIT_CACHE_DIR": "/deep_gemm",
    "NUMBA_CACHE_DIR": "/numba",
    "CUDA_CACHE_PATH": "/nv",
}
"""Weights and compiled code, below one directory. vLLM keeps most of Inductor's and Triton's below its own root."""

_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
"""No request leaves: the libraries take what is cached, and fail at once where it is not."""

_RUNNERS: Final = {"V1": "0", "V2": "1"}
"""Values of VLLM_USE_V2_MODEL_RUNNER; unset, vLLM decides (vllm/envs.py)."""


def engine_environment(spec: Spec) -> list[Item]:
    """`env` of the engine container before the podTemplate's is merged over it; engine.env overrides our defaults."""
    return override_env(_defaults(spec), [_variable(variable) for variable in spec.engine.env])


def _defaults(spec: Spec) -> list[dict[str, Any]]:
    variables = [{"name": name, "value": value} for name, value in _plain(spec.cache).items()]
    variables.append({"name": "PROMETHEUS_MULTIPROC_DIR", "value": f"{RUN_DIRECTORY}/prometheus"})
    # Variables and no arguments: an image with another runtime ignores them.
    variables.append({"name": DRAIN_TIMEOUT_ENV, "value": str(spec.rollout.drain_timeout_seconds)})
    variables.append({"name": LEAVING_ENV, "value": LEAVING})
    runner = _RUNNERS.get(spec.engine.model_runner)
    if runner is not None:
        variables.append({"name": "VLLM_USE_V2_MODEL_RUNNER", "value": runner})
    token = spec.model.token_secret_ref
    if token is None:
        return variables
    reference = {"secretKeyRef": {"name": token.name, "key": token.key}}
    return [*variables, {"name": "HF_TOKEN", "valueFrom": reference}]


def _plain(cache: Cache) -> dict[str, str]:
    root = CACHE_DIRECTORY if cache.on_claim else f"{HOME}/.cache"
    caches = {name: f"{root}{directory}" for name, directory in _CACHES.items()}
    return {**_PATHS, **caches, **(_OFFLINE if cache.offline else {})}


def _variable(variable: EnvVar) -> dict[str, Any]:
    """As the user wrote it: Kubernetes' own rules for `$(NAME)` apply to it."""
    return variable.model_dump(by_alias=True, exclude_none=True)
