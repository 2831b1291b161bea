"""Walks: the specs that one deployment is given, one after another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.campaign.schema import MISSING, Json, get, objects, put, refused, schema_of
from tests.campaign.values import WALKED, set_of, start_of, varied

_CHAINED: Final = 7
"""Fields in a chain: all chains go on at the same time, and the longest one decides how long."""


@dataclass(frozen=True)
class Step:
    """A spec, and what is tried while it is in force and must be refused."""

    label: str
    spec: Json
    attempts: Mapping[str, Json] = field(default_factory=dict)
    reaches: str = ""
    """The field that must reach an object in this step."""
    compared: bool = True
    """Whether there is a fresh deployment with this spec."""


@dataclass(frozen=True)
class Walk:
    """What one deployment goes through; `name` is the field."""

    name: str
    steps: tuple[Step, ...]


def field_walk(path: str) -> Walk:
    """Set, changed to every other value and back, unset, reverted. What a server refuses is tried on the way."""
    start, made = start_of(path), set_of(path)
    bad = {f"{what}": put(made, path, value) for what, value in refused(schema_of(path)).items()}
    steps = [Step("start", start), Step("set", made, bad, reaches=path)]
    for label, spec in varied(path).items():
        steps += [Step(label, spec), Step(f"set after {label}", made)]
    return Walk(path, (*steps, Step("reverted", start)))


def short_step(path: str, compared: bool) -> Step:
    """Set; one value that is refused."""
    made = set_of(path)
    bad = [{what: put(made, path, value)} for what, value in refused(schema_of(path)).items()]
    return Step(path, made, bad[-1] if bad else {}, reaches=path, compared=compared)


def emptied() -> Iterator[Walk]:
    """Every object of the spec: with something in it, empty, null, left out."""
    for path in objects():
        inside = next((p for p in WALKED if p.startswith(f"{path}.") and get(set_of(p), path) is not MISSING), None)
        if inside is None:
            continue
        start, made = start_of(inside), set_of(inside)
        changes = {"empty": put(made, path, {}), "null": put(made, path, None), "left out": put(made, path, MISSING)}
        steps = [step for label, spec in changes.items() for step in (Step(label, spec), Step(f"after {label}", made))]
        yield Walk(f"{path}: {{}}", (Step("start", start), Step("set", made), *steps, Step("reverted", start)))


def chains() -> Iterator[Walk]:
    """Few deployments for all fields: those of one part of the spec, each set while the one before it is reverted. The
    last one is compared, and what is left after it: a fresh deployment is what costs most."""
    groups: dict[str, list[str]] = {}
    for path in WALKED:
        groups.setdefault(path.split(".")[0].removesuffix("[]"), []).append(path)
    for name, paths in groups.items():
        for first in range(0, len(paths), _CHAINED):
            yield _chain(name, paths[first : first + _CHAINED])


def _chain(name: str, paths: Sequence[str]) -> Walk:
    start = start_of(paths[0])
    steps = (short_step(path, compared=path == paths[-1]) for path in paths)
    return Walk(name, (Step("start", start), *steps, Step("reverted", start)))
