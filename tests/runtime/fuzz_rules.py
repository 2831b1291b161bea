"""The rules of `PUT /dsd/v1/schedule` once more, written from docs/reference/http-api.md and not from the code.

`read` decides what a body is, `Model` which schedule must be in force. `test_fuzz_bodies` holds the engine against
them. Pure; shares nothing with dsd_runtime but its limits.
"""

import json
from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Final

from dsd_runtime.protocol import MAX_BODY_BYTES
from dsd_runtime.schedule import (
    MAX_BATCH_SIZE,
    MAX_DWELL_STEPS,
    MAX_MARGIN_PERCENT,
    MAX_RANGES,
    MAX_SPECULATIVE_TOKENS,
)

MAX_NUMBER: Final = 2**53 - 1
MAX_OWNER: Final = 512
BOUNDS: Final = {
    "startBatchSize": (1, MAX_BATCH_SIZE),
    "endBatchSize": (1, MAX_BATCH_SIZE),
    "numSpeculativeTokens": (0, MAX_SPECULATIVE_TOKENS),
}
SMOOTHING_BOUNDS: Final = {"dwellSteps": (0, MAX_DWELL_STEPS), "marginPercent": (0, MAX_MARGIN_PERCENT)}

Triple = tuple[int, int, int]
Smoothing = tuple[int, int] | None


@dataclass(frozen=True)
class Body:
    """A body that is well formed and in its bounds. Whether this engine can run it is another question."""

    owner: str
    number: int
    triples: tuple[Triple, ...]
    smoothing: Smoothing = None


class _WrongError(Exception):
    """Not strict JSON of the right form."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _WrongError
    return dict(pairs)


def _constant(_: str) -> Any:
    raise _WrongError


def read(content: bytes) -> Body | frozenset[int]:
    """What a body says, or the statuses it may be refused with.

    More than one where a list is too long and wrong inside as well: the documentation does not say which comes first.
    """
    if len(content) > MAX_BODY_BYTES:
        return frozenset({413})
    try:
        data = json.loads(content.decode(), object_pairs_hook=_pairs, parse_constant=_constant)
        data = _with(data, {"revision", "ranges"}, {"smoothing"})
        faults = _Faults()
        body = faults.body(data)
    except (_WrongError, ValueError, RecursionError):
        return frozenset({400})
    if faults.too_long and faults.wrong:
        return frozenset({400, 422})
    return frozenset({400}) if faults.wrong else frozenset({422}) if faults.out_of_range else body


def _with(value: Any, required: Set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    if not isinstance(value, dict) or not required <= set(value) <= required | optional:
        raise _WrongError
    return value


class _Faults:
    """Reads a body to its end, whatever is wrong in it."""

    def __init__(self) -> None:
        self.wrong = self.out_of_range = self.too_long = False

    def body(self, data: dict[str, Any]) -> Body:
        """The body; its values count only where no fault was found."""
        owner, number = self._revision(data["revision"])
        smoothing = self._smoothing(data["smoothing"]) if "smoothing" in data else None
        return Body(owner, number, self._ranges(data["ranges"]), smoothing)

    def _object(self, value: Any, keys: Set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
        try:
            return _with(value, keys, optional)
        except _WrongError:
            self.wrong = True
            return value if isinstance(value, dict) else {}

    def _integer(self, value: Any, low: int, high: int) -> int:
        if type(value) is not int:
            self.wrong = True
            return 0
        self.out_of_range |= not low <= value <= high
        return value

    def _revision(self, value: Any) -> tuple[str, int]:
        found = self._object(value, {"owner", "number"})
        owner = found.get("owner")
        try:
            length = len(owner.encode("utf-8").decode()) if isinstance(owner, str) else -1
        except UnicodeEncodeError:  # half of a surrogate pair is no text
            length = -1
        self.wrong |= length < 0
        self.out_of_range |= not 1 <= length <= MAX_OWNER
        return str(owner), self._integer(found.get("number"), 1, MAX_NUMBER)

    def _ranges(self, value: Any) -> tuple[Triple, ...]:
        if not isinstance(value, list):
            self.wrong = True
            return ()
        self.too_long = len(value) > MAX_RANGES
        self.out_of_range |= self.too_long or not value
        rows = [self._object(row, set(BOUNDS)) for row in value]
        values = [[self._integer(row.get(key), *bounds) for key, bounds in BOUNDS.items()] for row in rows]
        return tuple((start, end, k) for start, end, k in values)

    def _smoothing(self, value: Any) -> Smoothing:
        if value is None:
            return None
        found = self._object(value, set(), set(SMOOTHING_BOUNDS))
        dwell, margin = (self._integer(found.get(key, 0), *bounds) for key, bounds in SMOOTHING_BOUNDS.items())
        return dwell, margin


def possible(triples: tuple[Triple, ...], maximum: int) -> bool:
    """Whether an engine with this maximum can run these ranges, by the section Ranges."""
    ends = [0, *(end for _, end, _ in triples)]
    return (
        triples[0][0] == 1
        and all(start <= end and k <= maximum for start, end, k in triples)
        and all(start > before for (start, _, _), before in zip(triples, ends, strict=False))
    )


@dataclass(frozen=True)
class Model:
    """The schedule that must be in force; its number is the newest seen."""

    maximum: int
    triples: tuple[Triple, ...]
    smoothing: Smoothing
    owner: str
    number: int
    source: str

    def judge(self, body: Body) -> tuple[int, "Model"]:
        """Status of a PUT and the state after it."""
        if self._same(body):
            return 200, self
        if body.number <= self.number:
            return 409, self
        if not possible(body.triples, self.maximum):
            return 422, self
        return 200, self._with(body, "http")

    def read_file(self, body: Body) -> "Model":
        """The state after the engine has looked at the config file, with this content in it. Looking twice changes
        nothing more, since its number is no longer the newer one."""
        if body.number <= self.number or not possible(body.triples, self.maximum):
            return self
        return self._with(body, "file")

    def _same(self, body: Body) -> bool:
        mine = Body(self.owner, self.number, self.triples, self.smoothing)
        return body == mine

    def _with(self, body: Body, source: str) -> "Model":
        return Model(self.maximum, body.triples, body.smoothing, body.owner, body.number, source)

    def smoothing_object(self) -> dict[str, int] | None:
        """The smoothing in force, on the wire's form."""
        return dict(zip(SMOOTHING_BOUNDS, self.smoothing, strict=True)) if self.smoothing else None

    def shows(self, schedule: dict[str, Any]) -> bool:
        """Whether a status shows this schedule."""
        found = tuple((r["startBatchSize"], r["endBatchSize"], r["numSpeculativeTokens"]) for r in schedule["ranges"])
        return (
            found == self.triples
            and schedule["revision"] == {"owner": self.owner, "number": self.number}
            and schedule["source"] == self.source
            and schedule.get("smoothing") == self.smoothing_object()
        )
