"""Names of models: which forms vLLM can load, and hints for those that people write instead."""

from typing import Annotated, Final

from pydantic import Field

from dsd_operator.api.cel import Rule, first_of, raw

_HUB_PART: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
MODEL_NAME_PATTERN: Final = rf"^({_HUB_PART}(/{_HUB_PART}(:[A-Za-z0-9._-]+)?)?|/[^\s]+|(s3|gs)://[^\s]+)$"
"""A hub id (with a quantization after a colon for GGUF), an absolute path, or an address of vLLM's bucket loaders."""

CLASS_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)+$"
"""A dotted Python class, the `model` of method custom_class."""

_FORMS: Final = (
    "not a model name: use a Hugging Face id (org/name), an absolute path inside the pod, or an s3:// or gs:// address"
)


def model_name_hint(value: str) -> str:
    """CEL message expression that says what is wrong with the model name `value` (a CEL expression)."""
    cases = (
        (f"{value}.startsWith('hf://')", "write the Hugging Face id without hf://"),
        (
            f"{value}.matches({raw('^https?://')})",
            "a web address cannot be loaded; write the Hugging Face id (org/name)",
        ),
        (
            f"{value}.matches({raw('^(pvc|file|az|oci)://')})",
            "this address cannot be loaded; mount it with podTemplate and give the absolute path inside the pod",
        ),
        (
            f"{value}.matches({raw('^[.~]')}) || ({value}.matches({raw('^[^/:]+/[^/]*/')}))",
            "a relative path cannot be loaded; give the absolute path inside the pod, beginning with /",
        ),
    )
    return first_of(cases, _FORMS)


ModelName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1024,
        json_schema_extra={
            "x-kubernetes-validations": [
                Rule(f"self.matches({raw(MODEL_NAME_PATTERN)})", _FORMS, model_name_hint("self")).dump()
            ]
        },
    ),
]
"""Hugging Face id, absolute path, s3:// or gs:// address."""
