"""`kubectl dsd status`: the command line."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import EXIT_CODES, ApiFailure
from kubectl_dsd.options import all_namespaces_option, cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, print_data, to_yaml
from kubectl_dsd.status import gather, show

EPILOG = f"""\
\b
Examples:
  kubectl dsd status
  kubectl dsd status -A
  kubectl dsd status demo -n llm
  kubectl dsd status demo --watch
  kubectl dsd status demo -o json

{EXIT_CODES}"""

Look = Callable[[], tuple[Any, RenderableType]]
"""Looks once; what it saw as data, and for people."""


@click.command(epilog=EPILOG)
@name_argument(required=False)
@all_namespaces_option
@click.option("-w", "--watch", is_flag=True, help="Look again and again, until interrupted.")
@click.option(
    "--interval",
    type=click.FloatRange(0.2),
    default=2.0,
    show_default=True,
    help="Seconds between two looks of --watch.",
)
@output_option
@cluster_options
def status(
    cluster: Cluster, name: str | None, all_namespaces: bool, watch: bool, interval: float, output: Output
) -> None:
    """Show conditions, pods, the schedule, and which pods do not use it and why.

    With NAME everything about one deployment: its engines are asked through the API server. Without, a line for each
    deployment of the namespace.
    """
    if name is not None and all_namespaces:
        raise click.UsageError("give NAME, or -A, not both")
    look = _one(cluster, name) if name is not None else _many(cluster, all_namespaces)
    if watch:
        _watch(look, interval, output)
        return
    data, shown = look()
    if output == "table":
        console().print(shown)
    else:
        print_data(data, output)


def _one(cluster: Cluster, name: str) -> Look:
    def look() -> tuple[Any, RenderableType]:
        found = gather.overview(cluster, cluster.deployment(name))
        return found.data(), show.one(found)

    return look


def _many(cluster: Cluster, everywhere: bool) -> Look:
    def look() -> tuple[Any, RenderableType]:
        found = sorted(
            cluster.deployments(everywhere), key=lambda d: (d["metadata"]["namespace"], d["metadata"]["name"])
        )
        data = {"items": [gather.summary(deployment) for deployment in found]}
        where = "in any namespace" if everywhere else f"in namespace {cluster.namespace}"
        return data, show.many(found, everywhere) if found else f"There are no DSDDeployments {where}."

    return look


def _watch(look: Look, interval: float, output: Output) -> None:
    """In place on a terminal; elsewhere, and for programs, a new document whenever something has changed."""
    live = Live(console=console(), auto_refresh=False) if output == "table" and sys.stdout.isatty() else None
    last, looked = None, look()
    with live or nullcontext():
        while True:
            data, shown = looked
            if live is not None:
                live.update(shown, refresh=True)
            elif data != last:
                _print_change(data, shown, output, first=last is None)
            last = data
            looked = _look_again(look, interval, _below(live, shown) if live is not None else _on_stderr)


def _below(live: Live, shown: RenderableType) -> Callable[[str], None]:
    """Tells trouble below what is shown, which is that of before."""

    def tell(text: str) -> None:
        line = marked(f"{time.strftime('%H:%M:%S')} {text}; what is shown is that of before", "bad")
        live.update(Group(shown, Text(), line), refresh=True)

    return tell


def _on_stderr(text: str) -> None:
    click.echo(f"{text}; trying again", err=True)


def _look_again(look: Look, interval: float, tell: Callable[[str], None]) -> tuple[Any, RenderableType]:
    """The next look; an API server that is away for a while ends no watch."""
    while True:
        time.sleep(interval)
        try:
            return look()
        except ApiFailure as failure:
            if not failure.may_pass:
                raise
            tell(failure.message)


def _print_change(data: Any, shown: RenderableType, output: Output, first: bool) -> None:
    if output == "json":
        click.echo(json.dumps(data, ensure_ascii=False))
    elif output == "yaml":
        click.echo(f"---\n{to_yaml(data)}", nl=False)
    else:
        if not first:
            click.echo()
        console().print(shown)
    sys.stdout.flush()
