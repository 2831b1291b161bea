"""Options of vLLM that have a field of their own: which, and how their value is written there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_runtime.convert.numbers import human
from dsd_runtime.owned import AUTO_VALUES, MAX_MODEL_LEN


class TypedError(ValueError):
    """The value is not one that vLLM takes; the text says what it takes."""


@dataclass(frozen=True)
class Typed:
    """What an option sets, and which fields no longer hold what an earlier use of it set."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    cleared: Sequence[str] = ()
    extra: Sequence[str] = ()


_NOTHING: Final = ("", "None")
"""What vLLM's parser reads as "not given"."""


def _one(path: str, read: Callable[[str], Any]) -> Callable[[Sequence[str]], Typed]:
    def typed(values: Sequence[str]) -> Typed:
        return Typed(cleared=(path,)) if values[0] in _NOTHING else Typed({path: read(values[0])})

    return typed


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        if human(text) is not None:
            raise TypedError(f"vLLM takes no suffix here; write {human(text)}") from None
        raise TypedError("must be a whole number") from None


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TypedError("must be a number above 0 and up to 1, such as 0.9") from None


def _max_model_len(values: Sequence[str]) -> Typed:
    text, path = values[0].strip(), "engine.maxModelLen"
    if text.lower() in AUTO_VALUES:
        return Typed(cleared=(path,), extra=(f"{MAX_MODEL_LEN}={text.lower()}",))
    if (number := human(text)) is None:
        raise TypedError("must be a number of tokens, such as 32768 or 32K, or auto")
    return Typed({path: number})


def _names(values: Sequence[str]) -> Typed:
    return Typed({"model.servedNames": list(dict.fromkeys(values))})


TYPED: Final[Mapping[str, Callable[[Sequence[str]], Typed]]] = {
    "--served-model-name": _names,
    "--revision": _one("model.revision", str),
    "--max-num-seqs": _one("engine.maxNumSeqs", _integer),
    MAX_MODEL_LEN: _max_model_len,
    "--dtype": _one("engine.dtype", str),
    "--quantization": _one("engine.quantization", str),
    "--tensor-parallel-size": _one("engine.tensorParallelSize", _integer),
    "--gpu-memory-utilization": _one("engine.gpuMemoryUtilization", _share),
    "--shutdown-timeout": _one("rollout.drainTimeoutSeconds", _integer),
}
