"""`kubectl dsd schedule set`: another schedule, in use without a restart."""

from dataclasses import dataclass, field
from typing import Any

import click
from rich.text import Text

from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import EXIT_CODES, Failure
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, note, print_data, table
from kubectl_dsd.reach import ask_engines
from kubectl_dsd.schedule import compare, files, managers, patching, progress
from kubectl_dsd.schedule.waiting import HURRIED_SECONDS, Follower, Progress
from kubectl_dsd.wanted import Schedule, schedule_of

EPILOG = f"""\
\b
SCHEDULE in short: batch sizes and their K, separated by commas. The last range
may stay open: 1-16:3,17-64:1,65-:0

\b
Examples:
  kubectl dsd schedule set demo 1-16:3,17-:0
  kubectl dsd schedule set demo -f schedule.yaml --dry-run=server
  kubectl dsd profile demo -o yaml | kubectl dsd schedule set demo -f -
  kubectl dsd schedule set demo --smoothing dwellSteps=20,marginPercent=10
  kubectl dsd schedule set demo 1-:2 --no-wait

{EXIT_CODES}"""


@dataclass
class Change:
    """From what the resource asks for to what somebody wants."""

    before: Json
    old: Schedule
    new: Schedule
    warnings: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """The resource says it already."""
        return self.old == self.new


@click.command(name="set", epilog=EPILOG)
@name_argument()
@click.argument("schedule", required=False)
@click.option("-f", "--file", "file", help="Schedule file, or a DSDDeployment whose schedule to take; - for stdin.")
@click.option("--smoothing", help="dwellSteps=N,marginPercent=N, or off. Without: as it is, or as the file says.")
@click.option(
    "--dry-run",
    type=click.Choice(["none", "server"]),
    default="none",
    show_default=True,
    help="server: let the API server and the running engines judge it, and change nothing.",
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until all pods use it.")
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=120.0, show_default=True, help="Seconds to wait."
)
@output_option
@cluster_options
def set_schedule(
    cluster: Cluster,
    name: str,
    schedule: str | None,
    file: str | None,
    smoothing: str | None,
    dry_run: str,
    wait: bool,
    timeout: float,
    output: Output,
) -> None:
    """Change the schedule of a deployment; running pods use it within a second, and none restarts.

    Shows what changes, stores it in the resource, and waits until every pod has acknowledged it. If somebody else
    changes the schedule at the same moment, nothing is changed.
    """
    change = _prepare(cluster, name, schedule, file, smoothing)
    _announce(change, output)
    dry = dry_run == "server"
    changed = change.before if change.nothing else patching.write(cluster, change.before, change.new, dry_run=dry)
    found = None if dry or not wait else _wait(cluster, changed, change.new, timeout, output)
    _report(change, changed, found, dry, output)


def _prepare(cluster: Cluster, name: str, text: str | None, file: str | None, smoothing: str | None) -> Change:
    if text is None and file is None and smoothing is None:
        files.asked(None, None, None, Schedule(()))  # says what is missing, before anything is asked of a cluster
    before = cluster.deployment(name)
    old = schedule_of(before)
    change = Change(before, old, files.asked(text, file, smoothing, old))
    patching.refuse_impossible(before, change.new)
    asked = ask_engines(cluster, cluster.pods(before), timeout=HURRIED_SECONDS)
    if refusals := patching.engine_refusals(asked, change.new):
        raise Failure(f"running engines would refuse this schedule: {'; '.join(refusals[:3])}")
    change.warnings = [*patching.unprepared(asked, change.new), *managers.warnings(before)]
    return change


def _announce(change: Change, output: Output) -> None:
    for text in change.warnings:
        note(text)
    if output != "table":
        return
    columns = [compare.Column("BEFORE", change.old), compare.Column("AFTER", change.new)]
    rows = list(compare.rows(columns))
    changes = table(("BATCH SIZE", "K BEFORE", "K AFTER"), rows, map(compare.differs, rows))
    console().print(changes, Text(), marked(compare.smoothing_line(columns)), sep="\n")


def _wait(cluster: Cluster, changed: Json, wanted: Schedule, timeout: float, output: Output) -> Progress:
    with progress.shown(quiet=output != "table") as tell:
        return Follower(cluster, changed, wanted, timeout).wait(tell)


def _report(change: Change, changed: Json, found: Progress | None, dry: bool, output: Output) -> None:
    if output != "table":
        print_data(_data(change, changed, found, dry), output)
        return
    name = f"{change.before['metadata']['namespace']}/{change.before['metadata']['name']}"
    if dry:
        console().print(f"dry run: {name} may have this schedule; nothing was changed")
    elif change.nothing and found is None:
        console().print(f"{name} has this schedule already; nothing was changed")
    elif found is None:
        console().print(f"stored in {name}, schedule {change.new.hash}; not waited for the pods")
    else:
        console().print(_outcome(name, change, found))


def _outcome(name: str, change: Change, found: Progress) -> str:
    had = " (it had it already)" if change.nothing else ""
    if not found.total:
        return f"{name} has schedule {change.new.hash}{had}; there are no pods, new ones start with it"
    starting = f"; {len(found.starting)} still start, and start with it" if found.starting else ""
    pods = f"{found.applied} of {found.total} pods after {found.seconds:.1f} s"
    return f"{name} uses schedule {change.new.hash}{had}: {pods}{starting}"


def _data(change: Change, changed: Json, found: Progress | None, dry: bool) -> dict[str, Any]:
    meta = changed["metadata"]
    return {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "generation": meta.get("generation"),
        "dryRun": dry,
        "changed": not change.nothing and not dry,
        "before": change.old.data(),
        "after": change.new.data(),
        "warnings": change.warnings,
        "pods": found.data() if found else None,
    }
