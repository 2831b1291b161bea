"""`kubectl dsd rollout undo`: an earlier envelope, with the pods that were made of it then."""

import click

from dsd_runtime.schedule import validate
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import EXIT_CODES, Failure
from kubectl_dsd.options import cluster_options, name_argument, output_option
from kubectl_dsd.output import Output, console, marked, print_data
from kubectl_dsd.rollout import change
from kubectl_dsd.rollout.differences import changes, patch
from kubectl_dsd.rollout.revisions import Revision, pick, present, revisions_of
from kubectl_dsd.wanted import schedule_of

EPILOG = f"""\
\b
Examples:
  kubectl dsd rollout undo demo
  kubectl dsd rollout undo demo --to-revision 3 --dry-run=server
  kubectl dsd rollout undo demo && kubectl dsd rollout status demo

{EXIT_CODES}"""


@click.command(epilog=EPILOG)
@name_argument()
@click.option("--to-revision", type=int, help="Revision to go back to. Default: the one before the present.")
@click.option(
    "--dry-run",
    type=click.Choice(["none", "server"]),
    default="none",
    show_default=True,
    help="server: let the API server judge it, and change nothing.",
)
@output_option
@cluster_options
def undo(cluster: Cluster, name: str, to_revision: int | None, dry_run: str, output: Output) -> None:
    """Put an earlier envelope back into the resource. Pods are replaced, as spec.rollout says.

    The pods are those of then, to the letter, even if the operator has been upgraded since. Schedule, replicas and
    all that replaces no pod stay as they are; a schedule that does not fit the earlier envelope has to be changed
    first.
    """
    before = cluster.deployment(name)
    found, current = revisions_of(cluster, before), present(before)
    target = pick(found, current, to_revision)
    _refuse_schedule(before, target)
    spec = {} if target.hash == current else patch(before["spec"], target.envelope)
    dry = dry_run == "server"
    changed = change.write(cluster, before, spec, dry_run=dry) if spec else before
    now = next((revision for revision in found if revision.hash == current), None)
    words = [*changes(now.envelope, target.envelope)] if now is not None else []
    _report(changed, target, words, bool(spec), dry, output)


def _refuse_schedule(before: Json, target: Revision) -> None:
    """Raise Failure where the schedule asks for more than the earlier drafter can."""
    maximum = target.envelope["drafter"]["numSpeculativeTokens"]
    problems = validate(schedule_of(before).ranges, maximum)
    if problems:
        text = "; ".join(f"{p.field.replace('ranges', 'schedule', 1)}: {p.message}" for p in problems)
        raise Failure(
            f"the schedule does not fit revision {target.number}: {text}",
            "Set one that does first, with `kubectl dsd schedule set`; that replaces no pod.",
        )


def _report(changed: Json, target: Revision, words: list[str], did: bool, dry: bool, output: Output) -> None:
    meta = changed["metadata"]
    name = f"{meta['namespace']}/{meta['name']}"
    if output != "table":
        data = {"namespace": meta["namespace"], "name": meta["name"], "revision": target.number}
        print_data({**data, "dryRun": dry, "changed": did and not dry, "changes": words}, output)
        return
    for text in words:
        console().print(marked(f"  {text}"))
    if not did:
        console().print(f"{name} asks for revision {target.number} already; nothing was changed")
    elif dry:
        console().print(f"dry run: {name} may go back to revision {target.number}; nothing was changed")
    else:
        console().print(f"{name} goes back to revision {target.number}; `kubectl dsd rollout status` follows it")
