"""The engine container's argv. Exec form, one item per token, no shell: nobody has to quote anything.

`dsd-serve` takes its own `--dsd-*` options out and hands the rest to `vllm serve`. Nothing here looks at the schedule:
it is hot, and the argv is part of the pod template. The start-up table that prepares the K's is made inside the engine.
"""

import json
from typing import Any, Final

from dsd_operator.api import Spec
from dsd_operator.api.drafter import Drafter
from dsd_operator.api.engine import Engine
from dsd_operator.api.model import Model
from dsd_operator.render.verdict import prepared_tokens
from dsd_runtime.protocol import CONFIG_FILE_NAME

COMMAND: Final = ("dsd-serve",)
PORT: Final = 8000
CONFIG_DIRECTORY: Final = "/etc/dsd"


def engine_arguments(spec: Spec) -> list[str]:
    """Arguments of `dsd-serve`, ready for the container's `args`: free of anything the kubelet would expand."""
    arguments = [
        spec.model.name,
        *_model_options(spec.model),
        *("--dsd-config", f"{CONFIG_DIRECTORY}/{CONFIG_FILE_NAME}"),
        *("--dsd-prepared-tokens", ",".join(str(k) for k in prepared_tokens(spec))),
        *("--speculative-config", json.dumps(speculative_config(spec.drafter), sort_keys=True)),
        *("--port", str(PORT)),
        *_engine_options(spec.engine),
        *spec.engine.extra_args,
    ]
    return [literal(argument) for argument in arguments]


def literal(text: str) -> str:
    """`text` as the kubelet must get it so that the container sees it unchanged (it expands `$(X)` and `$$`)."""
    return text.replace("$", "$$")


def speculative_config(drafter: Drafter) -> dict[str, Any]:
    """vLLM's speculative config in its own spelling; unset fields are left to vLLM's defaults."""
    lookup = drafter.prompt_lookup
    typed = {
        "method": drafter.method,
        "model": drafter.model,
        "revision": drafter.revision,
        "num_speculative_tokens": drafter.num_speculative_tokens,
        "draft_tensor_parallel_size": drafter.tensor_parallel_size,
        "prompt_lookup_min": lookup.min if lookup else None,
        "prompt_lookup_max": lookup.max if lookup else None,
    }
    return {**drafter.parameters, **{key: value for key, value in typed.items() if value is not None}}


def _model_options(model: Model) -> list[str]:
    # Takes all items up to the next option, so an option of ours must follow it.
    names = ["--served-model-name", *model.served_names] if model.served_names else []
    return [*_option("--revision", model.revision), *names]


def _engine_options(engine: Engine) -> list[str]:
    return [
        *_option("--max-num-seqs", engine.max_num_seqs),
        *_option("--max-model-len", engine.max_model_len),
        *_option("--dtype", engine.dtype),
        *_option("--quantization", engine.quantization),
        *_option("--tensor-parallel-size", engine.tensor_parallel_size),
        *_option("--gpu-memory-utilization", engine.gpu_memory_utilization),
    ]


def _option(name: str, value: str | float | None) -> list[str]:
    return [] if value is None else [name, str(value)]
