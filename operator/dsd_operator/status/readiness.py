"""What a pod's Ready condition tells: whether it is ready, and whether it was. Under `pods` and `crashes`."""

from collections.abc import Mapping
from typing import Any

from dsd_operator.status.conditions import condition_of

Pod = Mapping[str, Any]


def condition(pod: Pod, kind: str) -> Mapping[str, Any]:
    """The pod's condition of this type; empty where it has none."""
    return condition_of(pod.get("status", {}), kind)


def ready_since(pod: Pod) -> str:
    """When a pod that is ready became so (RFC 3339); empty for any other."""
    ready = condition(pod, "Ready")
    return str(ready.get("lastTransitionTime") or "") if ready.get("status") == "True" else ""


def lost_since(pod: Pod, run: Mapping[str, Any]) -> bool:
    """Whether the pod has been ready, and is not any more, since a container began the `run` (the state that shows it).

    The kubelet calls a pod not ready before it starts its containers, and the time of that stays: a later one means
    that the pod was ready in between. Both times are the API's form, which sorts as text.
    """
    ready, started = condition(pod, "Ready"), str(run.get("startedAt") or "")
    return ready.get("status") == "False" and "" < started < str(ready.get("lastTransitionTime") or "")
