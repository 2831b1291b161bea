"""What an answer of the API server means for whoever asked. One table, from HTTP status to one of five classes."""

import json
from collections.abc import Mapping
from typing import Any, Final


class ApiError(Exception):
    """The API server did not do what it was asked. `message` is its own, fit for a condition; `code` 0: no answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Retry(ApiError):  # noqa: N818 - named for what it tells the caller
    """Not now; may work later. `delay`: seconds that the server asked to wait, 0 if it named none."""

    def __init__(self, code: int, message: str, delay: float = 0.0) -> None:
        super().__init__(code, message)
        self.delay = delay


class Invalid(ApiError):  # noqa: N818 - named for what it tells the caller
    """The request itself is wrong; it fails again until what it was made from changes."""


class Conflict(ApiError):  # noqa: N818 - named for what it tells the caller
    """Somebody else changed the object meanwhile: look again, then decide anew."""


class Gone(ApiError):  # noqa: N818 - named for what it tells the caller
    """The object, its namespace or its kind is not there, or the namespace is being deleted."""


class Forbidden(ApiError):  # noqa: N818 - named for what it tells the caller
    """Not allowed: rights, a quota, Pod Security or an admission policy. Heals when somebody changes those."""


_CLASSES: Final[Mapping[int, type[ApiError]]] = {
    400: Invalid,
    401: Retry,  # the client has logged in anew once already
    403: Forbidden,
    404: Gone,
    405: Invalid,
    406: Invalid,
    408: Retry,
    409: Conflict,
    410: Retry,  # a list whose continuation has expired: read it anew. No word on any object
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: Retry,
}


def from_response(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error that an answer with a status of 300 or more stands for."""
    status = _status(body)
    message = str(status.get("message") or f"the API server answered {code}")
    if _namespace_terminating(status):
        return Gone(code, message)
    kind = _CLASSES.get(code, Retry if code >= 500 else Invalid)
    if kind is Retry:
        return Retry(code, message, _seconds(retry_after))
    return kind(code, message)


def unreachable(error: BaseException) -> Retry:
    """The error for a request that got no answer at all."""
    return Retry(0, f"the API server does not answer: {str(error) or type(error).__name__}")


def _status(body: bytes) -> Mapping[str, Any]:
    try:
        status = json.loads(body)
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def _namespace_terminating(status: Mapping[str, Any]) -> bool:
    causes = (status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def _seconds(retry_after: str | None) -> float:
    """Retry-After in seconds; its other form, a date, is not used by API servers."""
    try:
        return max(0.0, float(retry_after or 0))
    except ValueError:
        return 0.0
