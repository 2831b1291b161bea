"""Environment of the engine container: ours first, then the user's in the user's order.

Everything that vLLM and its libraries write goes below HOME, /tmp or the run directory, all of them volumes: the root
file system is read-only and the user id may be one without a passwd entry (OpenShift).
"""

from typing import Any, Final

from dsd_operator.api import Spec
from dsd_operator.api.engine import EnvVar
from dsd_operator.render.merge import Item, override_env

HOME: Final = "/home/dsd"
CACHE: Final = f"{HOME}/.cache"
RUN_DIRECTORY: Final = "/run/dsd"

_PATHS: Final = {
    "HOME": HOME,
    # Without a passwd entry getpass.getuser() needs it; torch asks it for the name of its cache directory.
    "USER": "dsd",
    "TMPDIR": "/tmp",
    "XDG_CACHE_HOME": CACHE,
    "XDG_CONFIG_HOME": f"{HOME}/.config",
    "HF_HOME": f"{CACHE}/huggingface",
    "VLLM_CACHE_ROOT": f"{CACHE}/vllm",
    "VLLM_CONFIG_ROOT": f"{HOME}/.config/vllm",
    "TRITON_CACHE_DIR": f"{CACHE}/triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{CACHE}/torchinductor",
    "FLASHINFER_WORKSPACE_BASE": HOME,
    "NUMBA_CACHE_DIR": f"{CACHE}/numba",
    "CUDA_CACHE_PATH": f"{CACHE}/nv",
}

_RUNNERS: Final = {"V1": "0", "V2": "1"}
"""Values of VLLM_USE_V2_MODEL_RUNNER; unset, vLLM decides (vllm/envs.py)."""


def engine_environment(spec: Spec) -> list[Item]:
    """`env` of the engine container before the podTemplate's is merged over it; engine.env overrides our defaults."""
    return override_env(_defaults(spec), [_variable(variable) for variable in spec.engine.env])


def _defaults(spec: Spec) -> list[dict[str, Any]]:
    variables = [{"name": name, "value": value} for name, value in _PATHS.items()]
    variables.append({"name": "PROMETHEUS_MULTIPROC_DIR", "value": f"{RUN_DIRECTORY}/prometheus"})
    runner = _RUNNERS.get(spec.engine.model_runner)
    if runner is not None:
        variables.append({"name": "VLLM_USE_V2_MODEL_RUNNER", "value": runner})
    token = spec.model.token_secret_ref
    if token is None:
        return variables
    reference = {"secretKeyRef": {"name": token.name, "key": token.key}}
    return [*variables, {"name": "HF_TOKEN", "valueFrom": reference}]


def _variable(variable: EnvVar) -> dict[str, Any]:
    """As the user wrote it: Kubernetes' own rules for `$(NAME)` apply to it."""
    return variable.model_dump(by_alias=True, exclude_none=True)
