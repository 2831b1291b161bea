"""The command `kubectl dsd top`."""

import json
import time
from collections.abc import Callable, Sequence

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import EXIT_CODES, ApiFailure
from kubectl_dsd.options import all_namespaces_option, cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, print_data, to_yaml
from kubectl_dsd.top.samples import Look, Watcher
from kubectl_dsd.top.show import document, notes, table


@click.command(epilog=EXIT_CODES)
@name_argument(required=False)
@click.option("--once", is_flag=True, help="Show one sample, taken over one interval, and stop.")
@click.option(
    "--interval", type=click.FloatRange(0.2), default=2.0, show_default=True, help="Seconds between two samples."
)
@all_namespaces_option
@output_option
@cluster_options
def top(cluster: Cluster, name: str | None, once: bool, interval: float, all_namespaces: bool, output: Output) -> None:
    """Watch K, concurrency, acceptance and tokens per second of each pod; of one deployment, or of all. Ctrl-C ends it.

    Rates are those of the time since the sample before, from the engines' own counters. ACCEPTED is the share of
    drafted tokens, PER REQUEST the tokens that a request gets in a step: 1 without speculation.
    """
    if name and all_namespaces:
        raise click.UsageError("give either a name or --all-namespaces")
    watcher = Watcher(cluster, finder(cluster, name, all_namespaces))
    looks = Looks(watcher, interval)
    if once:
        show_once(looks.next(), output, everywhere=all_namespaces)
    elif output == "table":
        watch(looks, everywhere=all_namespaces)
    else:
        stream(looks, output)


def finder(cluster: Cluster, name: str | None, everywhere: bool) -> Callable[[], Sequence[Json]]:
    """What to look at, each time anew. The named one must exist, at the first look and at each later one."""
    if name is not None:
        return lambda: [cluster.deployment(name)]
    return lambda: cluster.deployments(everywhere)


class Looks:
    """Looks that are `interval` seconds apart; the first gives no rates and is not shown."""

    def __init__(self, watcher: Watcher, interval: float) -> None:
        self._watcher, self._interval = watcher, interval
        self._latest = time.monotonic()
        watcher.look()

    def next(self) -> Look:
        """The next one, when its time has come."""
        time.sleep(max(0.0, self._latest + self._interval - time.monotonic()))
        self._latest = time.monotonic()
        return self._watcher.look()


def show_once(look: Look, output: Output, *, everywhere: bool) -> None:
    """One sample."""
    if output == "table":
        console().print(rendered(look, everywhere=everywhere))
    else:
        print_data(document(look), output)


def stream(looks: Looks, output: Output) -> None:
    """A JSON document per line, or YAML documents, for ever. An API server that is away for a while ends nothing."""
    while True:
        try:
            found = document(looks.next())
        except ApiFailure as failure:
            tell_trouble(failure)
            continue
        text = json.dumps(found, ensure_ascii=False) if output == "json" else "---\n" + to_yaml(found).rstrip()
        click.echo(text)


def watch(looks: Looks, *, everywhere: bool) -> None:
    """Refresh the table in place, or print one after the other. An API server that is away for a while is told below
    the table, or on stderr.
    """
    out, latest = console(), Look(time.time(), ())
    with Live(console=out, auto_refresh=False) as live:
        while True:
            problem = ""
            try:
                latest = looks.next()
            except ApiFailure as failure:
                if not out.is_terminal:
                    tell_trouble(failure)
                    continue
                if not failure.may_pass:
                    raise
                problem = failure.message
            shown = rendered(latest, everywhere=everywhere, problem=problem)
            if out.is_terminal:
                live.update(shown, refresh=True)
            else:
                out.print(shown)


def tell_trouble(failure: ApiFailure) -> None:
    """Say on stderr that one look is missing; raises the failure where the next look would end alike."""
    if not failure.may_pass:
        raise failure
    click.echo(f"{failure.message}; trying again", err=True)


def rendered(look: Look, *, everywhere: bool = False, problem: str = "") -> RenderableType:
    """The table, and below it what is wrong."""
    lines = [marked(text, "doubtful") for text in notes(look)]
    if problem:
        lines.append(marked(f"{time.strftime('%H:%M:%S')} {problem}; the numbers are those of before", "bad"))
    body: RenderableType = table(look, everywhere=everywhere) if look.pods else Text("no pods")
    return Group(body, *([Text("")] if lines else []), *lines)
