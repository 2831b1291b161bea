"""What the bodies campaign writes into the config file, and what must come of it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from tests.runtime.fuzz_rules import Body, Model, Triple
from tests.unit.runtime_core.strategies import valid_ranges

OWNER: Final = "team-a/demo/uid-1"

BROKEN: Final[dict[str, Any]] = {
    "empty": lambda _: b"",
    "half": lambda good: good[: len(good) // 2],
    "one byte short": lambda good: good[:-1],
    "zeros": lambda good: b"\0" * len(good),
    "not text": lambda _: b"\xff\xfe\x00\x01",
    "a list": lambda _: b"- 1\n- 2\n",
    "no ranges": lambda _: b"revision: {owner: x, number: 4000000000}\n",
    "unknown key": lambda good: good[:-1] + b', "generation": 4}',
    "key given twice": lambda good: good[:-1] + b', "ranges": []}',
    "aliases": lambda _: b"a: &a [x,x]\nb: &b [*a,*a]\nranges: [*b,*b]\n",
    "a tag": lambda _: b"ranges: !!python/object/apply:os.abort []\n",
    "not a number": lambda good: good.replace(b'"number": ', b'"number": .nan, "x": '),
    "too large": lambda good: good + b" " * (1024 * 1024),
    "gone": lambda _: None,
}
"""Kinds of content that no engine can use."""


@dataclass(frozen=True)
class Write:
    """One change of the config file: a new schedule, or something `broken`. Not `whole`: written in place, in two
    parts, so that the engine may see the first alone."""

    triples: tuple[Triple, ...]
    number: int
    broken: str | None = None
    whole: bool = True
    heals_after: int = 1

    def body(self, model: Model) -> Body:
        """What the content says, for an engine in this state."""
        return Body(OWNER, max(model.number + self.number, 1), self.triples)


def content(body: Body, auth: dict[str, Any]) -> bytes:
    """A good config file."""
    names = ("startBatchSize", "endBatchSize", "numSpeculativeTokens")
    ranges = [dict(zip(names, triple, strict=True)) for triple in body.triples]
    revision = {"owner": body.owner, "number": body.number}
    return json.dumps({"auth": auth, "revision": revision, "ranges": ranges}).encode()


def replace(path: Path, data: bytes | None) -> None:
    """Write in one step, as the kubelet and editors do; None removes the file."""
    if data is None:
        path.unlink(missing_ok=True)
        return
    partial = path.with_suffix(".partial")
    partial.write_bytes(data)
    partial.replace(path)


@st.composite
def writes(draw: st.DrawFn, maximum: int) -> Write:
    """Any change of the file; half of them are broken, some are stale or ask for a K that is too large."""
    return Write(
        triples=tuple(r.triple() for r in draw(valid_ranges(maximum + draw(st.sampled_from((0, 0, 0, 1)))))),
        number=draw(st.integers(1, 1000) | st.integers(-50, 1000)),
        broken=draw(st.sampled_from((*[None] * len(BROKEN), *BROKEN))),
        whole=draw(st.sampled_from((True, True, True, False))),
        heals_after=draw(st.integers(1, 5)),
    )
