"""`kubectl dsd schedule history`: which schedules the pods have used, as far as they remember.

Engines keep it in memory, so it begins with each engine's start; the answer says what it cannot know.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from rich.text import Text

from dsd_runtime.cli import describe
from dsd_runtime.protocol import HISTORY_PATH
from kubectl_dsd import ages
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import EXIT_CODES
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, print_data, table
from kubectl_dsd.pod_view import restarts
from kubectl_dsd.reach import Asked, ask_engines
from kubectl_dsd.wanted import engine_schedule, schedule_of

EPILOG = f"""\
\b
Examples:
  kubectl dsd schedule history demo
  kubectl dsd schedule history demo -o json

{EXIT_CODES}"""


@dataclass
class Change:
    """One schedule that came into use, with the pods that said so and when."""

    schedule: Mapping[str, Any]
    times: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """When the first pod used it."""
        return min(self.times.values())

    def data(self) -> dict[str, Any]:
        """As `-o json` shows it."""
        pods = [{"name": pod, "time": time} for pod, time in sorted(self.times.items())]
        return {**self.schedule, "time": self.first, "pods": pods}


@click.command(epilog=EPILOG)
@name_argument()
@output_option
@cluster_options
def history(cluster: Cluster, name: str, output: Output) -> None:
    """Show which schedules the pods have used since they started, and when each came into use.

    Engines remember the latest 32 changes, until they restart. What was before is not recorded anywhere: keep
    schedules in Git for that.
    """
    deployment = cluster.deployment(name)
    asked = ask_engines(cluster, cluster.pods(deployment), HISTORY_PATH)
    changes, limits = changes_of(asked), list(limits_of(asked))
    if output != "table":
        print_data(_data(deployment, asked, changes, limits), output)
        return
    _print(deployment, asked, changes)
    for text in limits:
        console().print(marked(text, "quiet"))


def changes_of(asked: Iterable[Asked]) -> list[Change]:
    """The changes of all pods in the order in which they came into use; the same revision of several pods is one."""
    found: dict[tuple[Any, ...], Change] = {}
    for pod in asked:
        seen: dict[tuple[Any, ...], int] = {}
        for change in _first_core(pod).get("changes") or ():
            schedule = change["schedule"]
            number = (schedule.get("revision") or {}).get("number")
            key = (number, schedule.get("hash"))
            seen[key] = seen.get(key, 0) + 1  # one that comes a second time is another change
            entry = found.setdefault((*key, seen[key]), Change(schedule))
            entry.times[pod.name] = str(change["time"])
    return sorted(found.values(), key=lambda change: change.first)


def limits_of(asked: Iterable[Asked]) -> Iterator[str]:
    """What cannot be known, in sentences."""
    for pod in asked:
        core = _first_core(pod)
        if not core:
            yield f"{pod.name}: {_no_history(pod)}"
            continue
        again = restarts(pod.pod)
        before = f"; what it used before its {again} restarts is lost" if again else ""
        lost = f"; {core['forgotten']} older changes are no longer kept" if core.get("forgotten") else ""
        yield f"{pod.name} remembers since its start {ages.age(core.get('started'))} ago{lost}{before}"
        if _cores_differ(pod):
            yield f"{pod.name}: its engine cores have not used the same schedules; engine 0 is shown"


def _no_history(pod: Asked) -> str:
    if (pod.status or {}).get("mode") == "off":
        return "its schedule changes only with a restart, so it has no history"
    if "no DSD routes" in pod.problem:
        return "its runtime keeps no history, or it is no engine of ours"
    return pod.problem or "it tells nothing"


def _first_core(pod: Asked) -> Mapping[str, Any]:
    cores: Sequence[Mapping[str, Any]] = (pod.status or {}).get("engines") or ()
    return min(cores, key=lambda core: int(core["engine"]), default={})


def _cores_differ(pod: Asked) -> bool:
    cores = (pod.status or {}).get("engines") or ()
    return len({tuple(c["schedule"]["hash"] for c in core.get("changes") or ()) for core in cores}) > 1


def _data(deployment: Json, asked: Sequence[Asked], changes: Sequence[Change], limits: list[str]) -> dict[str, Any]:
    meta = deployment["metadata"]
    pods = [
        {
            "name": pod.name,
            "since": _first_core(pod).get("started"),
            "forgotten": _first_core(pod).get("forgotten"),
            "restarts": restarts(pod.pod),
            "problem": None if _first_core(pod) else _no_history(pod),
        }
        for pod in asked
    ]
    return {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "changes": [change.data() for change in changes],
        "pods": pods,
        "limits": limits,
    }


def _print(deployment: Json, asked: Sequence[Asked], changes: Sequence[Change]) -> None:
    meta, wanted = deployment["metadata"], schedule_of(deployment)
    if not changes:
        console().print(marked(f"No pod of {meta['namespace']}/{meta['name']} tells of any change."), Text(), sep="\n")
        return
    made = table(("IN USE SINCE", "AGO", "PODS", "SOURCE", "REVISION", "SCHEDULE", ""), ())
    for change in changes:
        schedule = engine_schedule(change.schedule)
        smoothing = f"; smoothing: {describe.smoothing_text(schedule.smoothing)}" if schedule.smoothing else ""
        made.add_row(
            change.first.replace("T", " "),
            ages.age(change.first),
            f"{len(change.times)}/{len(asked)}",
            marked(str(change.schedule.get("source"))),
            str((change.schedule.get("revision") or {}).get("number") or "none"),
            marked(f"{schedule.short()}{smoothing}"),
            "as asked for now" if schedule.hash == wanted.hash else "",
        )
    console().print(made, Text(), sep="\n")
