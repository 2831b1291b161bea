"""The name of a model, target or drafter: what the resource takes, and what to write instead of the rest."""

import re
from typing import Final

from dsd_operator.api.model_name import CLASS_PATTERN, MODEL_NAME_PATTERN
from kubectl_dsd.convert.report import Report

_HUB: Final = "hf://"
_MOUNT: Final = (
    "this address cannot be loaded; mount it with spec.podTemplate and name the model by its absolute path in the pod"
)
_WRONG: Final = (
    (r"https?://", "a web address cannot be loaded; write the Hugging Face id (org/name)"),
    (r"pvc://|file://|az://|oci://|abfs://|modelscope://", _MOUNT),
    (
        r"[.~]|[^/:]+/[^/]*/",
        "a relative path means nothing in a pod; give the absolute path inside it, beginning with /",
    ),
)
_FORMS: Final = "no name of a model: use a Hugging Face id (org/name), an absolute path in the pod, s3:// or gs://"


def model_name(text: str, field: str, report: Report) -> str:
    """`text` as the resource takes it; a problem where it does not."""
    name = text
    if name.startswith(_HUB):
        name = name.removeprefix(_HUB)
        report.note(field, f"{_HUB} is left out; vLLM takes the plain id")
    if re.fullmatch(MODEL_NAME_PATTERN, name):
        return name
    hint = next((hint for pattern, hint in _WRONG if re.match(pattern, name)), _FORMS)
    report.problem(field, f"{name!r}: {hint}")
    return name


def drafter_name(text: str, method: str, report: Report) -> str:
    """The same for a drafter, which may also be a Python class."""
    if method == "custom_class" and re.fullmatch(CLASS_PATTERN, text):
        return text
    return model_name(text, "drafter.model", report)


def resource_name(text: str) -> str:
    """A name for the resource, made of that of a model: `Acme/Llama-3.1-8B` becomes `llama-3-1-8b`."""
    last = text.rstrip("/").rpartition("/")[2].partition(":")[0].lower()
    name = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:_LONGEST].strip("-")
    return name if name[:1].isalpha() else f"model-{name}".strip("-")


_LONGEST: Final = 45
