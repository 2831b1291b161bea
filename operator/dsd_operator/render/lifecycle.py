"""How a pod ends without losing a request: out of the Service first, then running generations, then the engine.

Kubernetes takes a pod that is deleted out of the Service and starts its end at the same time; each node's kube-proxy
learns of it a moment later. So the end begins before SIGTERM, after which vLLM takes no request: with a pause, and then
as long as clients hold connections, up to the time to drain (`dsd_runtime.draining` lets them part meanwhile). These
and the engine's own end make the grace period.
"""

from typing import Any, Final

from dsd_operator.api import Spec
from dsd_operator.render.environment import LEAVING

PAUSE_SECONDS: Final = 5
"""At least, between the notice and SIGTERM. kube-proxy needs one second as a rule."""

END_SECONDS: Final = 30
"""For the engine to end itself once nothing runs any more, or running requests are out of time."""


def grace_seconds(spec: Spec) -> int:
    """Seconds between a pod's deletion and SIGKILL."""
    return PAUSE_SECONDS + spec.rollout.drain_timeout_seconds + END_SECONDS


def short_grace(spec: Spec) -> str | None:
    """What is wrong with a grace period of the podTemplate's, which takes the place of ours; None where nothing is."""
    given, needed = spec.pod_template.get("spec", {}).get("terminationGracePeriodSeconds"), grace_seconds(spec)
    if given is None or given >= needed:
        return None
    return (
        f"{given} s end a pod before its running requests may; leave it out for the {needed} s that "
        f"rollout.drainTimeoutSeconds {spec.rollout.drain_timeout_seconds} takes"
    )


def lifecycle(spec: Spec) -> dict[str, Any]:
    """The engine container's hooks.

    An image whose runtime does not say whether connections are open gets the pause alone: there is no file to wait for.
    """
    wait = f"n={spec.rollout.drain_timeout_seconds}; while [ $n -gt 0 ] && ls {LEAVING}.* > /dev/null 2>&1"
    script = f"touch {LEAVING}; sleep {PAUSE_SECONDS}; {wait}; do sleep 1; n=$((n-1)); done"
    return {"preStop": {"exec": {"command": ["sh", "-c", script]}}}
