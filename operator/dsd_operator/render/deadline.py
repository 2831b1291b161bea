"""How long a roll-out may stand still before it counts as failed: follows from the start-up time of an engine. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api import Spec
from dsd_operator.api.common import MAX_INT32
from dsd_operator.render.lifecycle import grace_seconds
from dsd_operator.render.probes import longest_start

_MARGIN_SECONDS: Final = 600
"""On top of the start-up time: scheduling, pulling an image of many gigabytes, attaching volumes."""


def progress_deadline(spec: Spec, pod_spec: Mapping[str, Any]) -> int:
    """Seconds, as a Deployment counts them: a pod that takes the place of another does not wait for its end.

    `pod_spec` is the rendered one: a podTemplate may give a startup probe more time than the field does, and then the
    kubelet still waits.
    """
    return min(max(spec.startup.timeout_seconds, longest_start(pod_spec)) + _MARGIN_SECONDS, MAX_INT32)


def group_deadline(spec: Spec, pod_spec: Mapping[str, Any]) -> int:
    """Seconds for an engine over several nodes, whose pods are made when those of before have drained: they have the
    same names."""
    return progress_deadline(spec, pod_spec) + grace_seconds(spec)
