"""`kubectl dsd rollout history`: the envelopes that the operator remembers, and what changed from one to the next."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import click

from kubectl_dsd import ages
from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import EXIT_CODES
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, print_data, table, to_yaml
from kubectl_dsd.rollout.differences import changes
from kubectl_dsd.rollout.revisions import Revision, pick, present, revisions_of

EPILOG = f"""\
\b
Examples:
  kubectl dsd rollout history demo
  kubectl dsd rollout history demo --revision 3
  kubectl dsd rollout history demo -o json

{EXIT_CODES}"""


@click.command(epilog=EPILOG)
@name_argument()
@click.option("--revision", type=int, help="Show all of this revision's envelope.")
@output_option
@cluster_options
def history(cluster: Cluster, name: str, revision: int | None, output: Output) -> None:
    """Show what pods were made from: each envelope, when it was first used, and what changed in it.

    The schedule is not in it: a change of it replaces no pod (`kubectl dsd schedule history`). RENDERED BY is the
    operator's version that made the pods' description; it stays in use through upgrades of the operator.

    Changed variables are named without their values, and what looks like a secret is hidden. --revision, json and yaml
    show the envelopes as they are stored.
    """
    deployment = cluster.deployment(name)
    found, current = revisions_of(cluster, deployment), present(deployment)
    if revision is not None:
        found = [pick(found, current, revision)]
    if output != "table":
        meta = deployment["metadata"]
        print_data({"namespace": meta["namespace"], "name": name, "revisions": _data(found, current)}, output)
    elif revision is not None:
        console().print(marked(to_yaml(dict(found[0].envelope))), end="")
    elif not found:
        console().print(f"{name} has no revisions: no pods were made yet, or the operator keeps no history")
    else:
        console().print(_table(found, current))


def _changes(found: Sequence[Revision]) -> list[list[str]]:
    """For each revision what changed from the one before it."""
    later = ([*changes(one.envelope, other.envelope)] for one, other in pairwise(found))
    return [[], *later] if found else []


def _table(found: Sequence[Revision], current: str) -> Any:
    made = table(("REVISION", "AGE", "RENDERED BY", "CHANGED"), ())
    for revision, changed in zip(found, _changes(found), strict=True):
        number = f"{revision.number}{' (current)' if revision.hash == current else ''}"
        words = "; ".join(changed) or ("-" if revision is found[0] else "nothing that shows")
        made.add_row(number, ages.age(revision.created), revision.version or "?", marked(words))
    return made


def _data(found: Sequence[Revision], current: str) -> list[dict[str, Any]]:
    return [
        {
            "revision": revision.number,
            "current": revision.hash == current,
            "creationTimestamp": revision.created,
            "renderedBy": revision.version or None,
            "envelope": dict(revision.envelope),
            "changes": changed,
        }
        for revision, changed in zip(found, _changes(found), strict=True)
    ]
