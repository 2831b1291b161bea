"""What the proxy knows of one request: who wants what from which object, and what became of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_VERSION_PARTS: Final = {"api": 2, "apis": 3}


@dataclass
class Call:
    """One request of the operator, as long as the proxy lives."""

    at: float
    """When it came (monotonic seconds)."""
    verb: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""
    agent: str = ""
    """The User-Agent: kopf, which watches, and the operator's own client differ by it."""
    reached: bool = False
    """Whether the API server was asked."""
    status: int | None = None
    """What the operator was answered; None: nothing (yet)."""
    answer: Mapping[str, Any] = field(default_factory=dict)
    """The API server's answer to a write that it carried out."""

    @property
    def parts(self) -> tuple[str | None, str | None, str | None, str | None]:
        """Namespace, plural, name and subresource; Nones for what is no resource."""
        split = [part for part in self.path.split("/") if part]
        rest = split[_VERSION_PARTS.get(split[0], len(split)) :] if split else []
        namespace = None
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource, *_ = [*rest, None, None, None]
        return namespace, plural, name, subresource

    @property
    def plural(self) -> str | None:
        """The kind, as the path spells it."""
        return self.parts[1]

    @property
    def framework(self) -> bool:
        """Whether kopf asks, and not the operator's own client."""
        return self.agent.startswith("kopf")

    @property
    def watch(self) -> bool:
        """Whether it opens a watch."""
        return self.query.get("watch") in ("1", "true")

    @property
    def read(self) -> bool:
        """Whether it reads objects: a GET or a LIST, not a watch, not a key set."""
        return self.verb == "GET" and not self.watch and self.plural is not None

    @property
    def write(self) -> bool:
        """Whether it changes an object. A token is made, and leaves nothing behind."""
        return self.verb in _WRITES and self.parts[3] != "token"

    @property
    def manifest(self) -> dict[str, Any]:
        """The body; empty if there is none."""
        decoded: dict[str, Any] = json.loads(self.body) if self.body else {}
        return decoded

    def __str__(self) -> str:
        _, plural, name, subresource = self.parts
        what = "/".join(part for part in (plural, name, subresource) if part) or self.path
        return f"{'WATCH' if self.watch else self.verb} {what} -> {self.status}"
