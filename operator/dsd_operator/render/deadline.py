"""How long a roll-out may stand still before it counts as failed: follows from the start-up time of an engine. Pure."""

from typing import Final

from dsd_operator.api import Spec
from dsd_operator.render.lifecycle import grace_seconds

_MARGIN_SECONDS: Final = 600
"""On top of the start-up time: scheduling, pulling an image of many gigabytes, attaching volumes."""


def progress_deadline(spec: Spec) -> int:
    """Seconds, as a Deployment counts them: a pod that takes the place of another does not wait for its end."""
    return spec.startup.timeout_seconds + _MARGIN_SECONDS


def group_deadline(spec: Spec) -> int:
    """Seconds for an engine over several nodes, whose pods are made when those of before have drained: they have the
    same names."""
    return progress_deadline(spec) + grace_seconds(spec)
