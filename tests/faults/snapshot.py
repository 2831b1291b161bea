"""What an API server that is behind shows to a client that watches: lists as of an earlier resourceVersion.

The API server itself knows its past: LIST takes `resourceVersionMatch=Exact`.
"""

from dataclasses import dataclass
from urllib.parse import urlencode

from tests.faults.calls import Call


@dataclass(frozen=True)
class Snapshot:
    """The cluster as of a resourceVersion."""

    version: str

    def address(self, call: Call) -> str:
        """Path and query of the list as it was then; later pages name the version themselves."""
        exact = {} if "continue" in call.query else {"resourceVersion": self.version, "resourceVersionMatch": "Exact"}
        return f"{call.path}?{urlencode({**call.query, **exact})}"
