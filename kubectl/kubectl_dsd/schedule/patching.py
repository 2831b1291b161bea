"""Writes a schedule into the resource, unless somebody else changed it in the meantime.

The patch carries the resourceVersion that the diff was made from. The operator writes the status, and so moves the
resourceVersion, at any time: a conflict that left the schedule alone is tried again.
"""

from collections.abc import Mapping
from typing import Any, Final

from dsd_runtime.schedule import validate
from kubectl_dsd import kinds
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import ApiFailure, Failure
from kubectl_dsd.reach import Asked
from kubectl_dsd.wanted import Schedule, schedule_of

_TRIES: Final = 10
_CONFLICT = 409
_INVALID = 422


def refuse_impossible(deployment: Mapping[str, Any], wanted: Schedule) -> None:
    """Raise Failure for what the API server would refuse too, in the words of the runtime."""
    maximum = ((deployment.get("spec") or {}).get("drafter") or {}).get("numSpeculativeTokens")
    problems = validate(wanted.ranges, maximum) if isinstance(maximum, int) else []
    if problems:
        text = "; ".join(f"{p.field.replace('ranges', 'schedule', 1)}: {p.message}" for p in problems)
        raise Failure(f"this schedule is not possible: {text}")


def engine_refusals(asked: list[Asked], wanted: Schedule) -> list[str]:
    """What running engines cannot do, by what they say of themselves."""
    found = []
    for one in asked:
        allowed = ((one.status or {}).get("envelope") or {}).get("allowedTokens")
        bad = sorted({r.num_speculative_tokens for r in wanted.ranges} - set(allowed)) if allowed else []
        if bad:
            numbers = ", ".join(f"K={k}" for k in bad)
            found.append(f"pod {one.name} cannot draft with {numbers}, only {', '.join(map(str, allowed or ()))}")
    return found


def unprepared(asked: list[Asked], wanted: Schedule) -> list[str]:
    """Values of K that are possible but slower, for they were not prepared when the engines started."""
    prepared = [set(((one.status or {}).get("envelope") or {}).get("preparedTokens") or ()) for one in asked]
    known = [values for values in prepared if values]
    if not known:
        return []
    missing = sorted({r.num_speculative_tokens for r in wanted.ranges} - set.intersection(*known))
    if not missing:
        return []
    numbers = ", ".join(f"K={k}" for k in missing)
    return [f"{numbers}: not prepared when the engines started, so correct but maybe slower (drafter.preparedTokens)"]


def write(cluster: Cluster, before: Json, wanted: Schedule, *, dry_run: bool) -> Json:
    """Set it; returns the resource as the API server has it then. Raises Failure."""
    meta, old = before["metadata"], schedule_of(before)
    version = meta["resourceVersion"]
    for _ in range(_TRIES):
        body = {"metadata": {"resourceVersion": version, "uid": meta["uid"]}, "spec": _spec(old, wanted)}
        try:
            return cluster.patch(kinds.DEPLOYMENT, meta["namespace"], meta["name"], body, dry_run=dry_run)
        except ApiFailure as failure:
            if failure.status != _CONFLICT:
                raise in_words(failure, "schedule", "kubectl dsd schedule show NAME") from failure
        version = _version_if_untouched(cluster, before)
    raise Failure("the resource changes too often to be changed", "Try again.")


def _spec(old: Schedule, wanted: Schedule) -> dict[str, Any]:
    """The fields that change; a null removes smoothing."""
    document = wanted.document()
    spec: dict[str, Any] = {"schedule": document["ranges"]}
    return spec if old.smoothing == wanted.smoothing else spec | {"smoothing": document.get("smoothing")}


def _version_if_untouched(cluster: Cluster, before: Json) -> str:
    """The new resourceVersion where only something else has changed; raises Failure where the schedule has."""
    now = cluster.deployment(before["metadata"]["name"])
    same = now["metadata"]["uid"] == before["metadata"]["uid"]
    if not same or schedule_of(now) != schedule_of(before):
        raise Failure(
            "somebody else changed the schedule at the same moment; nothing was changed by this command",
            f"It is {schedule_of(now).short()} now. Run the command again to set yours.",
        )
    return str(now["metadata"]["resourceVersion"])


def in_words(failure: ApiFailure, what: str, look: str) -> Failure:
    """A refusal of the CRD's rules, each with its field; `look` is the command for where nobody knows whether it
    (`what`, a noun) was changed."""
    if failure.may_pass:
        return Failure(
            f"{failure.message}; the {what} may have been changed all the same, or may be yet",
            f"`{look}` says; run the command again to be sure.",
        )
    causes = ((failure.body.get("details") or {}).get("causes")) or []
    if failure.status != _INVALID or not causes:
        return failure
    lines = [f"{cause.get('field')}: {_rule(str(cause.get('message')))}" for cause in causes]
    return Failure(f"the API server refuses this {what}: {'; '.join(dict.fromkeys(lines))}")


def _rule(message: str) -> str:
    """The rule's own words, without the value that the API server puts before them."""
    return message.rpartition('": ')[2] if message.startswith("Invalid value") else message
