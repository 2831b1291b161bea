"""The oracles: what must be true after a step, as lines that say what is not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api import parse
from dsd_operator.api.envelope import envelope, envelope_hash
from dsd_operator.render.extras import EXTRAS
from dsd_operator.status.reasons import Reason
from tests.campaign.picture import Picture, differences
from tests.campaign.schema import effective
from tools.generate_fields import Effect, fields

KEPT: Final = frozenset(extra.kind for extra in EXTRAS if extra.keeps)
"""Kinds whose objects stay when they are no longer wanted: a deployment may have one that a fresh one has not."""

_SHOWN: Final = 6
_CLUSTER: Final = frozenset({Reason.API_MISSING, Reason.CACHE_NOT_AS_ASKED})
"""Reasons that lie in this cluster: it knows no LeaderWorkerSets, and nothing binds a claim, so that it cannot grow."""
_FOR_GOOD: Final = ("cannot change", "cannot shrink")
_EFFECTS: Final = {found.path: found.effect for found in fields()}

_NAMED: Final[Mapping[Effect, frozenset[str]]] = {
    Effect.HOT: frozenset({"ConfigMap"}),
    Effect.SCALED: frozenset({"Deployment"}),
    Effect.NEXT_ROLLOUT: frozenset({"Deployment"}),
    Effect.ROLLED: frozenset({"Deployment"}),
}
"""The objects that a field reaches by what it does; the others reach something beside the pods and their schedule."""


@dataclass(frozen=True)
class Fresh:
    """A deployment that was made with a spec and has had no other."""

    picture: Picture | None
    """None: the server refuses the spec."""
    refusal: str = ""


@dataclass(frozen=True)
class Turn:
    """One step of one walk: the deployment before and after it."""

    before_spec: Mapping[str, Any]
    before: Picture
    spec: Mapping[str, Any]
    after: Picture
    fresh: Fresh | None
    """None: not compared, and known to be a good spec."""
    refusal: str = ""
    """What the server said when it did not take the spec for this deployment."""
    reaches: str = ""
    """The field that must reach an object in this step."""


def judge(turn: Turn) -> Iterator[str]:
    """Everything that is wrong after a step."""
    yield from _taken(turn)
    if turn.fresh is not None:
        yield from _compared(turn, turn.fresh.picture)
    if turn.refusal:
        yield from untouched(turn.before, turn.after)
    elif turn.after.final:
        yield from _rolls(turn)
        yield from _reached(turn)
    else:
        yield f"never settled: {turn.after.status.get('conditions')}"


def _compared(turn: Turn, fresh: Picture | None) -> Iterator[str]:
    if turn.refusal and fresh is not None and not _no_way_there(turn):
        yield f"a fresh deployment may have this, and this one may not: {turn.refusal}"
    if fresh is None and not turn.refusal:
        yield f"this deployment may have what a fresh one may not: {turn.fresh.refusal if turn.fresh else ''}"
    if turn.refusal or fresh is None:
        return
    if turn.after.ready.get("reason") == Reason.CACHE_NOT_AS_ASKED:
        # A claim cannot become what a new one is; all else can.
        yield from _shown(differences(_beside_the_claim(turn.after), _beside_the_claim(fresh)))
        return
    if turn.after.final:
        yield from _shown(_differential(turn.before, turn.after, fresh))


def _beside_the_claim(of: Picture) -> Mapping[str, Any]:
    return {kind: child for kind, child in of.children.items() if kind not in KEPT}


def _taken(turn: Turn) -> Iterator[str]:
    """The first value of a field is a good one, and works unless the cluster keeps it from that."""
    if not turn.reaches or _no_way_there(turn):
        return
    refusal = turn.refusal if turn.fresh is None else turn.fresh.refusal
    if refusal:
        yield f"the server refuses a good value: {refusal}"
    elif not turn.after.healthy and turn.after.ready.get("reason") not in _CLUSTER:
        yield f"a good value does not work: {dict(turn.after.ready)}"


def _no_way_there(turn: Turn) -> bool:
    """Whether the server says that this field of this deployment cannot change any more, or not to this."""
    return any(words in turn.refusal for words in _FOR_GOOD)


def untouched(before: Picture, after: Picture) -> Iterator[str]:
    """What a refused write changed."""
    if before.versions != after.versions:
        yield f"a refused value changed something: {dict(before.versions)} became {dict(after.versions)}"


def _differential(before: Picture, after: Picture, fresh: Picture) -> Iterator[str]:
    """A healthy one equals a fresh one in everything. A spec that cannot be carried out says so in the same words,
    changes what it would change in a fresh one, and leaves alone the rest."""
    if fresh.healthy:
        yield from differences(after.status, fresh.status, "status")
    yield from differences(after.ready, fresh.ready, "Ready")
    for kind in sorted({*before.children, *after.children, *fresh.children}):
        wanted = fresh.children.get(kind)
        if wanted is None and (not fresh.healthy or kind in KEPT):
            wanted = before.children.get(kind)
        yield from differences(after.children.get(kind), wanted, kind)


def _rolls(turn: Turn) -> Iterator[str]:
    """Another template rolls exactly once, and comes of another envelope alone."""
    before, after = turn.before, turn.after
    rolled = after.rolls - before.rolls
    changed = before.template != after.template
    if rolled != int(changed):
        yield f"the template {'changed' if changed else 'is the same'}, and the Deployment rolled {rolled} times"
    if before.healthy and after.healthy and changed and not _another_envelope(turn):
        yield "the template changed, and the envelope is the same"


def _another_envelope(turn: Turn) -> bool:
    one, other = ({"metadata": {"name": "n", "namespace": "n"}, "spec": s} for s in (turn.before_spec, turn.spec))
    return envelope_hash(envelope(parse(one).spec)) != envelope_hash(envelope(parse(other).spec))


def _reached(turn: Turn) -> Iterator[str]:
    """A changed field reaches what it names, and nothing changes that no changed field names."""
    if not (turn.before.healthy and turn.after.healthy):
        return
    changed = {kind for kind in _kinds(turn) if turn.before.children.get(kind) != turn.after.children.get(kind)}
    effects = changed_effects(turn.before_spec, turn.spec)
    wanted = _EFFECTS.get(turn.reaches)
    if wanted is not None and not changed & _NAMED.get(wanted, changed - {"ConfigMap", "Deployment"}):
        yield f"{turn.reaches} is documented as '{wanted}', and only {sorted(changed)} changed with it"
    for kind in ("ConfigMap", "Deployment"):
        named = any(kind in _NAMED.get(effect, ()) for effect in effects)
        if kind in changed and not named and not (kind == "Deployment" and _another_envelope(turn)):
            yield f"the {kind} changed for fields that are documented as {sorted(effects)}"


def _kinds(turn: Turn) -> set[str]:
    return {*turn.before.children, *turn.after.children}


def changed_effects(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[Effect]:
    """What docs/reference/fields.md says of the fields in which two specs differ."""
    return {effect for path, effect in _EFFECTS.items() if effective(one, path) != effective(other, path)}


def _shown(lines: Iterator[str]) -> Iterator[str]:
    found = list(lines)
    yield from found[:_SHOWN]
    if len(found) > _SHOWN:
        yield f"and {len(found) - _SHOWN} more differences"
