"""`kubectl dsd rollout restart`: new pods, though nothing else has changed."""

from datetime import UTC, datetime

import click

from kubectl_dsd.cluster import Cluster
from kubectl_dsd.errors import EXIT_CODES
from kubectl_dsd.options import cluster_options, name_argument
from kubectl_dsd.output import console
from kubectl_dsd.rollout import change

EPILOG = f"""\
\b
Examples:
  kubectl dsd rollout restart demo
  kubectl dsd rollout restart demo && kubectl dsd rollout status demo

{EXIT_CODES}"""


@click.command(epilog=EPILOG)
@name_argument()
@click.option("--dry-run", type=click.Choice(["none", "server"]), default="none", show_default=True)
@cluster_options
def restart(cluster: Cluster, name: str, dry_run: str) -> None:
    """Replace all pods, as spec.rollout says, by pods as the operator's present version makes them.

    Sets spec.rollout.restartedAt to the time. After an upgrade of the operator this is how pods get the new version's
    image and description; until then they stay as they are.
    """
    before = cluster.deployment(name)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    dry = dry_run == "server"
    change.write(cluster, before, {"rollout": {"restartedAt": now}}, dry_run=dry)
    where = f"{before['metadata']['namespace']}/{name}"
    if dry:
        console().print(f"dry run: {where} may be restarted; nothing was changed")
    else:
        console().print(f"{where} is restarted; `kubectl dsd rollout status` follows it")
