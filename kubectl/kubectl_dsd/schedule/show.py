"""`kubectl dsd schedule show`: what is asked for, and what each pod uses."""

from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from dsd_runtime.cli import describe
from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import EXIT_CODES
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, print_data, table, to_yaml
from kubectl_dsd.status.gather import Overview, overview
from kubectl_dsd.status.show import in_use

EPILOG = f"""\
\b
Examples:
  kubectl dsd schedule show demo
  kubectl dsd schedule show demo --export > schedule.yaml
  kubectl dsd schedule show demo -o json

{EXIT_CODES}"""


@click.command(epilog=EPILOG)
@name_argument()
@click.option("--export", is_flag=True, help="Print the schedule alone, as a file for `schedule set -f` or dsd-serve.")
@output_option
@cluster_options
def show(cluster: Cluster, name: str, export: bool, output: Output) -> None:
    """Show the schedule that is asked for, which K runs now, and what the engines allow."""
    found = overview(cluster, cluster.deployment(name))
    if export:
        click.echo(to_yaml(found.wanted.document()), nl=False)
    elif output != "table":
        print_data(_data(found), output)
    else:
        _print(found)


def _data(found: Overview) -> dict[str, Any]:
    meta = found.deployment["metadata"]
    keys = ("name", "schedule", "numSpeculativeTokens", "inSync", "why")
    return {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "schedule": found.wanted.data(),
        "envelope": next(_envelopes(found), None),
        "pods": [{key: pod.data()[key] for key in keys} for pod in found.pods],
    }


def _envelopes(found: Overview) -> Iterator[dict[str, Any]]:
    for pod in found.pods:
        if envelope := (pod.asked.status or {}).get("envelope"):
            yield envelope


def _print(found: Overview) -> None:
    meta, wanted = found.deployment["metadata"], found.wanted
    now: dict[int, list[int]] = {}
    for pod in found.pods:
        for k in pod.tokens():
            now.setdefault(k, []).append(0)
    title = f"{meta['namespace']}/{meta['name']}: schedule {wanted.hash}, used by {found.using()} of "
    console().print(marked(f"{title}{len(found.counted())} pods"), Text(), sep="\n")
    console().print(table(("BATCH SIZE", "K", ""), describe.schedule_rows(wanted.ranges, now)), Text(), sep="\n")
    if found.pods:
        made = table(("POD", "K NOW", "SCHEDULE IN USE"), ())
        for pod in found.pods:
            made.add_row(marked(pod.name), ", ".join(map(str, pod.tokens())) or "-", in_use(pod))
        console().print(made, Text(), sep="\n")
    for line in _closing(found):
        console().print(marked(line))


def _closing(found: Overview) -> Iterator[str]:
    yield f"smoothing: {describe.smoothing_text(found.wanted.smoothing)}"
    told = (pod.asked.status for pod in found.pods if pod.asked.status and pod.asked.status.get("envelope"))
    if (status := next(told, None)) is not None:
        yield from describe.envelope_lines(status)
    for pod in found.late():
        yield f"{pod.name}: {pod.why}"
    yield from (f"note: {text}" for text in found.notes())
