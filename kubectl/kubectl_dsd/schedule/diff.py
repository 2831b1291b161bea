"""`kubectl dsd schedule diff`: the resource against its pods, and against a file."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
from rich.text import Text

from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import EXIT_CODES
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, print_data, table
from kubectl_dsd.pod_view import PodView
from kubectl_dsd.schedule import compare, files
from kubectl_dsd.schedule.compare import Column
from kubectl_dsd.status.gather import Overview, overview
from kubectl_dsd.wanted import Schedule, engine_schedule

_DIFFERENT: Final = 3

EPILOG = f"""\
\b
Examples:
  kubectl dsd schedule diff demo
  kubectl dsd schedule diff demo -f schedule.yaml
  kubectl dsd schedule diff demo -f deployment.yaml --exit-code

{EXIT_CODES.rstrip()}
  {_DIFFERENT}  with --exit-code: something differs
"""


@click.command(epilog=EPILOG)
@name_argument()
@click.option("-f", "--file", "file", help="Schedule file, or a DSDDeployment, to compare with too; - for stdin.")
@click.option("--exit-code", is_flag=True, help=f"Exit with {_DIFFERENT} where something differs.")
@output_option
@cluster_options
def diff(cluster: Cluster, name: str, file: str | None, exit_code: bool, output: Output) -> None:
    """Compare the schedule that is asked for with what each pod uses, and with a file."""
    wanted = files.read(file) if file is not None else None
    found = overview(cluster, cluster.deployment(name))
    given = files.over(found.wanted, wanted) if wanted is not None else None
    used = {pod.name: schedule for pod in found.counted() if (schedule := _used(pod)) is not None}
    same = _same(found, given, used)
    if output == "table":
        _print(found, given, used, same)
    else:
        print_data(_data(found, given, used, same), output)
    if exit_code and same is not True:
        sys.exit(_DIFFERENT)


def _used(pod: PodView) -> Schedule | None:
    return engine_schedule(pod.schedule) if pod.schedule else None


def _same(found: Overview, given: Schedule | None, used: Mapping[str, Schedule]) -> bool | None:
    """Whether all agree; None where a pod cannot be asked and all others agree."""
    others = [*([given] if given is not None else []), *used.values()]
    if any(other.hash != found.wanted.hash for other in others):
        return False
    return None if any(pod.in_sync is None for pod in found.counted()) else True


def _data(found: Overview, given: Schedule | None, used: Mapping[str, Schedule], same: bool | None) -> dict[str, Any]:
    meta = found.deployment["metadata"]
    return {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "same": same,
        "resource": found.wanted.data(),
        "file": given.data() if given is not None else None,
        "pods": [
            {
                "name": pod.name,
                "schedule": used[pod.name].data() if pod.name in used else None,
                "inSync": pod.in_sync,
                "why": pod.why or None,
            }
            for pod in found.counted()
        ],
    }


def _print(found: Overview, given: Schedule | None, used: Mapping[str, Schedule], same: bool | None) -> None:
    columns = _columns(found, given, used)
    rows = list(compare.rows(columns))
    console().print(
        table(("BATCH SIZE", *(f"K {c.title}" for c in columns)), rows, map(compare.differs, rows)), Text(), sep="\n"
    )
    console().print(marked(compare.smoothing_line(columns)))
    for line in _sentences(found, given, same):
        console().print(marked(line))


def _columns(found: Overview, given: Schedule | None, used: Mapping[str, Schedule]) -> list[Column]:
    """The resource, the file, and each schedule that some pod uses and the resource does not ask for."""
    columns = [Column("RESOURCE", found.wanted)]
    if given is not None:
        columns.append(Column("FILE", given))
    groups: dict[str, list[str]] = {}
    for pod, schedule in used.items():
        if schedule.hash != found.wanted.hash:
            groups.setdefault(schedule.hash, []).append(pod)
    columns += [Column(_title(pods), used[pods[0]]) for pods in groups.values()]
    return columns


def _title(pods: Sequence[str]) -> str:
    more = f" +{len(pods) - 1}" if len(pods) > 1 else ""
    return f"{pods[0]}{more}"


def _sentences(found: Overview, given: Schedule | None, same: bool | None) -> list[str]:
    lines = [f"{found.using()} of {len(found.counted())} pods use the schedule of the resource"]
    if given is not None:
        equal = given.hash == found.wanted.hash
        lines.append("the file says the same" if equal else "the file differs from the resource")
    lines += [f"{pod.name}: {pod.why}" for pod in found.late()]
    if same is True and found.counted():
        lines.append("no differences")
    return lines
