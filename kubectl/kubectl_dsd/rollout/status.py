"""`kubectl dsd rollout status`: follows a roll-out to its end."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from dsd_operator.status.reasons import ConditionType, Reason
from kubectl_dsd import kinds
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import EXIT_CODES, Failure
from kubectl_dsd.options import cluster_options, name_argument
from kubectl_dsd.output import console

EPILOG = f"""\
\b
Examples:
  kubectl dsd rollout status demo
  kubectl dsd rollout status demo --timeout 1800
  kubectl dsd rollout status demo --no-wait

{EXIT_CODES}"""

_POLL_SECONDS: Final = 0.5
_SILENCE_SECONDS: Final = 10.0
"""How long the operator may say nothing before the person is told; it takes a fraction of a second."""


@dataclass(frozen=True)
class Stage:
    """How far a roll-out is, in one line; `done` and `stuck` end the waiting."""

    words: str
    done: bool = False
    stuck: bool = False


@click.command(epilog=EPILOG)
@name_argument()
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it has ended.")
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=3600.0, show_default=True, help="Seconds to wait."
)
@cluster_options
def status(cluster: Cluster, name: str, wait: bool, timeout: float) -> None:
    """Say how far the pods are on their way to what the resource says, until they are there.

    Exits with 1 when the roll-out cannot go on, with the reason, and when time is up.
    """
    deployment, begin, last = cluster.deployment(name), time.monotonic(), ""
    while True:
        seconds = time.monotonic() - begin
        stage = stage_of(deployment, seconds)
        if stage.words != last:
            console().print(stage.words)
            last = stage.words
        if stage.done or not wait:
            return
        if stage.stuck:
            raise Failure("the roll-out does not go on", f"`kubectl dsd explain {name}` says what to do.")
        if seconds >= timeout:
            raise Failure(f"the roll-out has not ended within {timeout:.0f} s", "It goes on; `explain` says more.")
        time.sleep(_POLL_SECONDS)
        deployment = _again(cluster, deployment)


def stage_of(deployment: Mapping[str, Any], seconds: float = 0.0) -> Stage:
    """Where it is by the operator's word, `seconds` after the first look. Pure."""
    generation = deployment["metadata"]["generation"]
    conditions = {c["type"]: c for c in (deployment.get("status") or {}).get("conditions") or ()}
    progressing = conditions.get(ConditionType.PROGRESSING.value, {})
    if progressing.get("observedGeneration", 0) < generation:
        silent = ": does it run?" if seconds > _SILENCE_SECONDS else ""
        return Stage(f"the operator has not looked at it yet{silent}")
    reason, message = progressing.get("reason"), progressing.get("message", "")
    if reason == Reason.ROLLED_OUT.value:
        return Stage(f"rolled out: {message}", done=True)
    return Stage(f"{reason}: {message}", stuck=progressing.get("status") == "False")


def _again(cluster: Cluster, deployment: Json) -> Json:
    meta = deployment["metadata"]
    now = cluster.get(kinds.DEPLOYMENT, meta["namespace"], meta["name"])
    if now is None or now["metadata"]["uid"] != meta["uid"]:
        raise Failure("the deployment was deleted in the meantime")
    return now
