"""`kubectl dsd explain`: the command line."""

import sys
from collections.abc import Iterator
from typing import Final

import click
from rich.text import Text

from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import EXIT_CODES
from kubectl_dsd.explain.facts import gather
from kubectl_dsd.explain.finding import Finding, Weight
from kubectl_dsd.explain.verdict import Verdict, judge
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, plain, print_data

_FAULTY: Final = 3
_SHOWN: Final = 3
_KINDS: Final = {Weight.ERROR: "bad", Weight.WARNING: "doubtful", Weight.INFO: "quiet"}

EPILOG = f"""\
\b
Examples:
  kubectl dsd explain demo
  kubectl dsd explain demo -n llm -o json
  kubectl dsd explain demo --exit-code || echo look at it

{EXIT_CODES.rstrip()}
  {_FAULTY}  with --exit-code: something is wrong
"""


@click.command(epilog=EPILOG)
@name_argument()
@click.option("--exit-code", is_flag=True, help=f"Exit with {_FAULTY} where something is wrong.")
@output_option
@cluster_options
def explain(cluster: Cluster, name: str, exit_code: bool, output: Output) -> None:
    """Say why a deployment is not Ready or does not use its schedule, and what to do about it.

    Looks at the resource, its Deployment, ReplicaSets, pods and Events, at what the engines say, at NetworkPolicies,
    PodDisruptionBudgets and the operator itself. Changes nothing. What you may not read is named and left out.
    """
    verdict = judge(gather(cluster, cluster.deployment(name)))
    if output == "table":
        for line in _lines(verdict):
            console().print(line)
    else:
        print_data(verdict.data(), output)
    if exit_code and verdict.weight is not Weight.INFO:
        sys.exit(_FAULTY)


def _lines(verdict: Verdict) -> Iterator[Text]:
    kind = "good" if verdict.weight is Weight.INFO and verdict.ready else _KINDS[verdict.weight]
    name = Text(plain(f"{verdict.namespace}/{verdict.name}: "), style="bold")
    yield name + marked(verdict.sentence, kind) + (f" ({verdict.state})" if verdict.state else "")
    for found in verdict.findings:
        yield Text()
        yield from _finding(found)
    if verdict.unseen:
        yield Text()
        yield from (marked(f"could not look: {text}", "quiet") for text in verdict.unseen)


def _finding(found: Finding) -> Iterator[Text]:
    yield marked(f"{found.cause[:1].upper()}{found.cause[1:]}", _KINDS[found.weight]) + marked(
        f"  [{found.reason}]", "quiet"
    )
    if found.fix:
        yield marked(f"  what to do: {found.fix}")
    if found.objects:
        rest = len(found.objects) - _SHOWN
        more = f" and {rest} more" if rest > 0 else ""
        yield marked(f"  seen at: {', '.join(found.objects[:_SHOWN])}{more}", "quiet")
    for text in found.said[:_SHOWN]:
        yield marked(f"  it says: {text}", "quiet")
