"""Hypothesis strategies for the bodies campaign: PUTs that are valid, almost valid, and wrong in every way.

A recipe says how a body comes out of the state the engine is in: whether a revision is stale depends on what was
accepted before. `fuzz_campaign` sends what a recipe makes.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from dsd_runtime.protocol import MAX_BODY_BYTES
from tests.runtime.fuzz_rules import Model, Triple
from tests.unit.runtime_core.strategies import TABLES, nearly_valid_tables, valid_ranges

MARK: Final = "@@{}@@"
"""Stands in a tree for raw text that json.dumps cannot make."""

RAW: Final = (
    *("NaN", "-Infinity", "1e400", "1E3", "-0", "01", "0x10", "1.", "1.0", "2.5", "true", "null", "tru", "'x'", ""),
    *('"\\ud800"', '"\\u0000"', '"\\ud83d\\ude00"', '"\\x"', '"\t"', "[", '{"a":', "[] []", "/* x */ 1", "1,"),
    *("9" * 19, "9" * 400, "9" * 5000, "-" + "9" * 30, "0." + "1" * 500, "18446744073709551616", "9007199254740992"),
    *("[" * 500 + "]" * 500, "[" * 30_000, '{"a":' * 5000, '{"a":' * 100 + "1" + "}" * 100, '"' + "x" * 30_000 + '"'),
)
"""What may stand where a value is expected."""

NUMBERS: Final = st.one_of(
    st.integers(1, 1000),
    st.integers(-1000, -1),
    st.sampled_from((0, 0, 1)),
    st.sampled_from((-(10**30), -1, 0, 2**53, 2**63, 2**64, 10**40)).map(lambda n: (n,)),
)
"""Revision numbers: relative to the newest one, or absolute (in a tuple)."""

OWNERS: Final = st.one_of(
    st.just("team-a/demo/uid-1"),
    st.text(st.characters(), min_size=0, max_size=12),
    st.sampled_from(("x" * 512, "x" * 513, "😀" * 512, "😀" * 513, "\x00", "../..", "{{7*7}}", "é\u0301")),
)
SMOOTHING: Final[st.SearchStrategy[dict[str, Any]]] = st.one_of(
    st.just({}),
    st.just({}),
    st.fixed_dictionaries(
        {}, optional={"dwellSteps": st.integers(-1, 10_001), "marginPercent": st.integers(-1, 51)}
    ).map(lambda value: {"smoothing": value}),
    st.sampled_from((None, 0, "off", [], True)).map(lambda value: {"smoothing": value}),
)
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


@dataclass(frozen=True)
class Edit:
    """One change of the tree: at the node `at` (modulo their number) put `raw`, or remove the node, or add a key."""

    at: int
    how: str
    raw: str


@dataclass(frozen=True)
class Recipe:
    """How to make one PUT. `again` sends what is in force; `cuts` change single bytes or spans of the text."""

    triples: tuple[Triple, ...]
    number: Any
    owner: str
    smoothing: dict[str, Any]
    again: bool = False
    edits: tuple[Edit, ...] = ()
    twice: int | None = None
    cuts: tuple[tuple[str, float, int], ...] = ()
    ascii_only: bool = True
    encoding: str = "utf-8"
    padding: int = 0
    chunked: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    token: str = "good"

    def content(self, model: Model) -> bytes:
        """The body for an engine in this state."""
        text = json.dumps(*self._tree(model), ensure_ascii=self.ascii_only)
        for i, edit in enumerate(self.edits):
            text = text.replace(json.dumps(MARK.format(i)), edit.raw)
        if self.twice is not None:
            text = twice(text, self.twice)
        content = text.encode(self.encoding, "surrogatepass" if self.encoding.startswith("utf") else "replace")
        for cut in self.cuts:
            content = changed(content, *cut)
        return content + b" " * (self.padding - len(content))

    def _tree(self, model: Model) -> tuple[Any]:
        number = self.number[0] if isinstance(self.number, tuple) else max(model.number + self.number, -5)
        triples, owner, smoothing = self.triples, self.owner, self.smoothing
        if self.again:
            number, triples, owner = model.number, model.triples, model.owner
            smoothing = {"smoothing": model.smoothing_object()} if model.smoothing else {}
        names = ("startBatchSize", "endBatchSize", "numSpeculativeTokens")
        ranges = [dict(zip(names, triple, strict=True)) for triple in triples]
        root: list[Any] = [{"revision": {"owner": owner, "number": number}, "ranges": ranges, **smoothing}]
        for i, edit in enumerate(self.edits):
            _apply(root, edit, MARK.format(i))
        return (root[0],)


def _places(node: Any) -> list[tuple[Any, Any]]:
    """(container, key or index) of every node below `node`."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in ((node, key), *_places(node[key]))]


def _apply(root: list[Any], edit: Edit, mark: str) -> None:
    places = _places(root)
    container, key = places[edit.at % len(places)]
    if edit.how == "remove" and container is not root:
        del container[key]
    elif edit.how == "add" and isinstance(container[key], dict):
        container[key][f"extra{edit.at}"] = mark
    elif edit.how == "add" and isinstance(container[key], list):
        container[key].append(mark)
    else:
        container[key] = mark


def twice(text: str, at: int) -> str:
    """The text with one member of an object given twice."""
    members = list(re.finditer(r'"\w+": [^,{}\[\]]+', text))
    if not members:
        return text
    member = members[at % len(members)]
    return f"{text[: member.end()]}, {member.group()}{text[member.end() :]}"


def changed(content: bytes, how: str, where: float, value: int) -> bytes:
    """The content with a byte changed or put in, or a span left out or repeated."""
    at = int(where * len(content))
    if how == "cut off":
        return content[:at]
    if how == "insert":
        return content[:at] + bytes([value]) + content[at:]
    if how == "change":
        return content[:at] + bytes([value]) + content[at + 1 :]
    span = content[at : at + value]
    return content[:at] + (span * 2 if how == "repeat" else b"") + content[at + value :]


EDITS: Final = st.builds(
    Edit,
    at=st.integers(0, 400),
    how=st.sampled_from(("put", "put", "put", "remove", "add")),
    raw=st.sampled_from(RAW) | VALUES.map(json.dumps),
)
CUTS: Final = st.tuples(
    st.sampled_from(("cut off", "insert", "change", "leave out", "repeat")),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 255),
)
HEADERS: Final = st.sampled_from(
    (
        (),
        (("Content-Type", "application/json"),),
        (("Content-Type", "text/plain; charset=utf-16"),),
        (("Content-Type", "multipart/form-data"),),
        (("Content-Type", "\u00ff/x"),),
        (("Content-Encoding", "gzip"),),
        (("X-HTTP-Method-Override", "DELETE"), ("Accept", "text/html")),
        (("Expect", "100-continue"),),
        tuple((f"X-{i}", "y" * 100) for i in range(40)),
    )
)


@st.composite
def recipes(draw: st.DrawFn, maximum: int) -> Recipe:
    """Any PUT. A third are meant to be accepted; most of the others are wrong in one way only."""
    good = draw(st.sampled_from((True, False, False)))
    tables = st.one_of(TABLES, nearly_valid_tables(), valid_ranges(maximum + 2).map(_triples))
    table = draw(valid_ranges(maximum).map(_triples) if good else tables)
    recipe: dict[str, Any] = {
        "triples": tuple(table),
        "number": draw(st.integers(1, 1000) if good else NUMBERS),
        "owner": draw(st.just("team-a/demo/uid-1") if good else OWNERS),
        "smoothing": draw(SMOOTHING),
        "ascii_only": draw(st.booleans()),
        "chunked": draw(st.booleans()),
        "headers": draw(HEADERS),
        "token": draw(st.sampled_from(("good",) * 20 + ("none", "rubbish", "another audience"))),
    }
    return Recipe(**recipe, **draw(st.just({}) if good else TROUBLE))


def _triples(ranges: Any) -> list[Triple]:
    return [r.triple() for r in ranges]


TROUBLE: Final = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"again": st.just(True)}),
    st.fixed_dictionaries({"edits": st.lists(EDITS, min_size=1, max_size=2).map(tuple)}),
    st.fixed_dictionaries({"edits": st.lists(EDITS, min_size=1, max_size=2).map(tuple)}),
    st.fixed_dictionaries({"cuts": st.lists(CUTS, min_size=1, max_size=3).map(tuple)}),
    st.fixed_dictionaries({"twice": st.integers(0, 100)}),
    st.fixed_dictionaries({"encoding": st.sampled_from(("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1"))}),
    st.fixed_dictionaries(
        {"padding": st.sampled_from((4096, MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 2 * MAX_BODY_BYTES, 1_000_000))}
    ),
)
"""One thing that is wrong, or only looks so."""
