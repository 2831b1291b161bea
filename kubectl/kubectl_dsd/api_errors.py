"""What the API server refuses, in plain words. Pure; `cluster` raises what this makes."""

import json
import re
from typing import Any, Final

from dsd_operator.api.constants import GROUP, PLURAL
from kubectl_dsd.errors import ApiFailure

CRD_MISSING: Final = f"the cluster does not know the kind DSDDeployment: the CRD {PLURAL}.{GROUP} is not installed"
CRD_HINT: Final = "Install the operator's chart, or use another --context: `kubectl config get-contexts` lists them."

_WRAPPING: Final = re.compile(r"^.*(?:\): |\[Errno -?\d+\] )")
"""Names of objects and numbers before the words themselves."""


def no_answer(host: str, context: str, error: Exception) -> ApiFailure:
    """The API server cannot be reached."""
    reason = _reason(error)
    hint = f"Is this the right cluster (context {context})? `kubectl cluster-info` tries the same."
    if "CERTIFICATE_VERIFY_FAILED" in reason or "certificate verify failed" in reason:
        return ApiFailure(0, f"the certificate of {host} is not trusted", f"{reason}\n{hint}")
    if "timed out" in reason.lower():
        return ApiFailure(0, f"the API server {host} does not answer in time", hint)
    return ApiFailure(0, f"the API server {host} cannot be reached: {reason}", hint)


def _reason(error: Exception) -> str:
    """The innermost cause: urllib3 wraps it several times, and names objects on the way."""
    cause: Any = error
    while (inner := getattr(cause, "reason", None)) is not None and inner is not cause and not isinstance(inner, str):
        cause = inner
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    text = " ".join(str(cause).split()) or type(cause).__name__
    return _WRAPPING.sub("", text) or text


def refusal(status: int, content: bytes, what: str, complaint: str = "") -> ApiFailure:
    """An answer of 300 and above to `what`, such as "read pods"."""
    body = _status_object(content)
    message = str(body.get("message") or content[:300].decode(errors="replace").strip() or f"HTTP {status}")
    if status == 404 and not body:
        return ApiFailure(status, f"the API server has no such resource ({what})", "", body)
    if status == 401:
        hint = complaint or "Log in again; `kubectl auth whoami` shows who you are."
        return ApiFailure(status, "the API server does not accept your credentials", hint, body)
    if status == 403 and complaint:
        return ApiFailure(status, f"you may not {what}: {message}", f"Logging in failed before: {complaint}", body)
    if status == 403:
        hint = f"Ask for the right to {what}; `kubectl auth can-i --list` shows what you may do."
        return ApiFailure(status, f"you may not {what}: {message}", hint, body)
    return ApiFailure(status, f"the API server refuses to {what}: {message}", "", body)


def _status_object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}
