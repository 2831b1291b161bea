"""The token check of `auth` by what the config file says now. `routes` asks it for each PUT.

The file is read each time, so that renewed keys count with the next request, and parsed only when its content has
changed: anybody may send requests, and YAML is slow.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dsd_runtime import resolved
from dsd_runtime.auth import AuthError, authorize
from dsd_runtime.config_file import ConfigFileError, parse, read_bytes
from dsd_runtime.protocol import TokenFileAuth, TokenReviewAuth

NO_CONFIG_FILE: Final = "writing over HTTP is off: start dsd-serve with --dsd-config FILE, with auth in it"

Auth = TokenReviewAuth | TokenFileAuth | None


@dataclass(frozen=True)
class _Parsed:
    content: bytes
    auth: Auth = None
    fault: str = ""


class Access:
    """May be used from several threads at once; they take turns at a new content, so that one of them parses it."""

    def __init__(self) -> None:
        self._last = _Parsed(b"", fault="never read")
        self._lock = threading.Lock()

    def check(self, headers: Sequence[bytes]) -> None:
        """Raise AuthError unless a request with these Authorization headers may write."""
        path = resolved.config_path()
        if path is None:
            raise AuthError(403, NO_CONFIG_FILE)
        try:
            auth = self._auth(path)
        except ConfigFileError as error:
            raise AuthError(403, f"writing over HTTP is off: config file {path}: {error}") from error
        authorize(headers, auth, path.parent)

    def _auth(self, path: Path) -> Auth:
        content = read_bytes(path)
        with self._lock:
            last = self._last
            if last.content != content or not content:
                last = self._last = _parse(content)
        if last.fault:
            raise ConfigFileError(last.fault)
        return last.auth


def _parse(content: bytes) -> _Parsed:
    try:
        return _Parsed(content, parse(content).auth)
    except ConfigFileError as error:
        return _Parsed(content, fault=str(error))
