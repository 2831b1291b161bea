"""`kubectl dsd rollout`: the group."""

import click

from kubectl_dsd.rollout.history import history
from kubectl_dsd.rollout.restart import restart
from kubectl_dsd.rollout.status import status
from kubectl_dsd.rollout.undo import undo


@click.group()
def rollout() -> None:
    """See, undo, force and follow the replacement of pods.

    Pods are replaced when the envelope changes: everything of the spec but the schedule, the replicas and what stands
    beside the pods. The operator keeps the latest ten envelopes, each with the pods that it made of it.
    """


for command in (history, restart, status, undo):
    rollout.add_command(command)
