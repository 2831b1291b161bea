"""Tables of `status`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dsd_operator.status.pods import is_ready
from dsd_runtime.cli import describe
from kubectl_dsd import ages
from kubectl_dsd.output import marked, plain, table
from kubectl_dsd.pod_view import PodView, phase, restarts
from kubectl_dsd.reach import ready_word
from kubectl_dsd.status.gather import Overview, summary

_CALM: Final = frozenset({"RolledOut", "ScaledToZero"})
"""Reasons of a condition that is False and nothing to worry about."""

_LONG: Final = frozenset({"MESSAGE", "MODEL", "NODE", "SCHEDULE IN USE"})
"""Columns that may take several lines on a narrow terminal, so that names stay in one piece."""


def one(overview: Overview) -> Group:
    """Everything about one deployment."""
    return Group(*_spaced(_parts(overview)))


def many(deployments: Iterable[Mapping[str, Any]], namespaces: bool) -> Table:
    """A line for each deployment."""
    headings = (*(("NAMESPACE",) if namespaces else ()), "NAME", "MODEL", "METHOD", "MAX K", "READY", "SCHEDULE")
    made = _grid((*headings, "STATE", "AGE"))
    for deployment in deployments:
        facts, status = summary(deployment), deployment.get("status") or {}
        ready: Mapping[str, Any] = next((c for c in facts["conditions"] if c["type"] == "Ready"), {})
        made.add_row(
            *([plain(facts["namespace"])] if namespaces else []),
            *(plain(str(facts[key])) for key in ("name", "model", "method", "maxSpeculativeTokens")),
            plain(str(status.get("ready") or "?")),
            plain(str((status.get("schedule") or {}).get("applied") or "?")),
            marked(str(ready.get("reason") or "unseen by the operator"), _kind(ready)),
            ages.age(facts["creationTimestamp"]),
        )
    return made


def _parts(overview: Overview) -> Iterator[RenderableType]:
    facts = summary(overview.deployment)
    yield _title(facts)
    if facts["conditions"]:
        yield _conditions(facts["conditions"])
    if overview.pods:
        yield _pods(overview.pods)
    yield _schedule(overview)
    lines = [f"{pod.name}: {pod.why}" for pod in overview.late()]
    if lines:
        yield Group(Text("Not known to use the schedule:", style="bold"), *(marked(f"  {line}") for line in lines))
    if notes := list(overview.notes()):
        yield Group(*(marked(f"note: {text}", "doubtful") for text in notes))


def _title(facts: Mapping[str, Any]) -> Group:
    replicas = facts["replicas"]
    about = f"{facts['model']}, {facts['method']}, K up to {facts['maxSpeculativeTokens']}"
    serving = f"{replicas['ready'] or 0} of {replicas['wanted']} pods ready"
    where = [marked(f"inside the cluster: {facts['url']}", "quiet")] if facts["url"] else []
    return Group(
        Text(plain(f"{facts['namespace']}/{facts['name']}"), style="bold") + marked(f": {serving}"),
        marked(about),
        *where,
    )


def _conditions(conditions: Sequence[Mapping[str, Any]]) -> Table:
    made = _grid(("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"))
    for found in conditions:
        kind = _kind(found)
        made.add_row(
            plain(str(found["type"])),
            marked(str(found["status"]), kind),
            marked(str(found["reason"]), kind),
            ages.age(found["lastTransitionTime"]),
            plain(str(found["message"])),
        )
    return made


def _kind(condition: Mapping[str, Any]) -> str:
    """Whether a condition is good, bad, or only on its way."""
    status, reason = condition.get("status"), condition.get("reason")
    if condition.get("type") == "Progressing":
        return "good" if reason in _CALM else "doubtful" if status == "True" else "bad"
    return {"True": "good", "False": "quiet" if reason in _CALM else "bad"}.get(str(status), "doubtful")


def _pods(pods: Sequence[PodView]) -> Table:
    made = _grid(("POD", "NODE", "READY", "STATE", "RESTARTS", "AGE", "SCHEDULE IN USE", "K NOW"))
    for view in pods:
        made.add_row(
            plain(view.name),
            plain(str((view.pod.get("spec") or {}).get("nodeName") or "none")),
            marked(ready_word(view.pod), "good" if is_ready(view.pod) else "doubtful"),
            plain(phase(view.pod)),
            str(restarts(view.pod)),
            ages.age(view.pod["metadata"].get("creationTimestamp")),
            in_use(view),
            ", ".join(map(str, view.tokens())) or "-",
        )
    return made


def in_use(view: PodView) -> Text:
    """What a pod uses, in the colour of whether it should."""
    kind = {True: "good", False: "bad"}.get(view.in_sync, "doubtful")  # type: ignore[arg-type]
    if view.schedule is None:
        return marked("in force" if view.in_sync else "unknown", kind)
    source = describe.SOURCES.get(view.schedule.get("source", ""), str(view.schedule.get("source")))
    number = (view.schedule.get("revision") or {}).get("number")
    revision = f", revision {number}" if number else ""
    return marked(f"{view.schedule.get('hash')} from {source}{revision}", kind)


def _schedule(overview: Overview) -> Group:
    wanted = overview.wanted
    rows = describe.schedule_rows(wanted.ranges, {})
    return Group(
        marked(f"wanted: schedule {wanted.hash}, used by {overview.using()} of {len(overview.counted())} pods"),
        table(("BATCH SIZE", "K", ""), rows),
        marked(f"smoothing: {describe.smoothing_text(wanted.smoothing)}", "quiet"),
    )


def _grid(headings: Sequence[str]) -> Table:
    made = Table(*headings, box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column, heading in zip(made.columns, headings, strict=True):
        column.overflow = "fold"
        column.no_wrap = heading not in _LONG
    return made


def _spaced(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    for i, part in enumerate(parts):
        if i:
            yield Text()
        yield part
