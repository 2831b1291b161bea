"""Schema of `spec.drafter.parameters`: a free map, in which keys that have a field are declared only to refuse them.

CEL sees declared properties only, so the keys are declared, in the two spellings people use; what else vLLM would read
as one of them is found before a pod is made (`dsd_runtime.parameters`).
"""

from collections.abc import Iterator
from typing import Any, Final

from dsd_operator.api.cel import Rule
from dsd_runtime.parameters import SWITCHES, TYPED_KEYS

_INT_OR_STRING: Final = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
_TABLE: Final = {"type": "array", "maxItems": 32, "items": {"type": "array", "maxItems": 8, "items": _INT_OR_STRING}}

_SWITCH_TEXT: Final = {
    "parallel_drafting": "Draft all tokens in one pass (PARD, P-EAGLE). Model runner V1, and only the maximum K works.",
    "use_heterogeneous_vocab": "Let target and draft model have different vocabularies; draft_model on runner V1 only.",
    "enable_adaptive_verification": "Trim the verification per request; dspark on model runner V2 only.",
}


def _spellings(key: str) -> list[str]:
    return list(dict.fromkeys((key, key.replace("_", "-"))))


def _cel_name(key: str) -> str:
    """A property name in CEL: Kubernetes escapes the dash."""
    return key.replace("-", "__dash__")


def _type(key: str) -> dict[str, Any]:
    if key == "num_speculative_tokens_per_batch_size":
        return _TABLE
    return {"type": "string"} if key in ("method", "model", "revision") else _INT_OR_STRING


def _properties() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in SWITCHES:
        yield name, {"type": "boolean", "description": _SWITCH_TEXT[name]}
    for key, field in TYPED_KEYS.items():
        for spelling in _spellings(key):
            yield spelling, _type(key) | {"description": f"Refused here: set spec.{field} instead."}


def _rule(key: str, field: str) -> Rule:
    absent = " && ".join(f"!has(self.{_cel_name(spelling)})" for spelling in _spellings(key))
    return Rule(absent, f"{key} has a field of its own: set spec.{field} instead")


PARAMETERS_SCHEMA: Final = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": dict(_properties()),
    "x-kubernetes-validations": [_rule(key, field).dump() for key, field in TYPED_KEYS.items()],
}
