"""`kubectl dsd schedule`: the group."""

import click

from kubectl_dsd.schedule.change import set_schedule
from kubectl_dsd.schedule.diff import diff
from kubectl_dsd.schedule.history import history
from kubectl_dsd.schedule.show import show


@click.group()
def schedule() -> None:
    """Show, compare and change schedules.

    A schedule says which K, the number of tokens to draft, is used at which batch size. A change restarts no pod.
    """


for command in (diff, history, set_schedule, show):
    schedule.add_command(command)
