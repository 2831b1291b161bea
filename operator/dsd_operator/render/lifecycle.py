"""How a pod ends without losing a request: out of the Service first, then running generations, then the engine.

Kubernetes takes a pod that is deleted out of the Service and starts its end at the same time; each node's kube-proxy
learns of it a moment later. So the end begins with a pause in which the engine serves as ever (`dsd_runtime.draining`
lets clients part from it meanwhile). The three parts make the grace period.
"""

from typing import Any, Final

from dsd_operator.api import Spec
from dsd_operator.render.environment import LEAVING

PAUSE_SECONDS: Final = 5
"""Between the notice and SIGTERM. kube-proxy needs one second as a rule; clients that keep connections use them
meanwhile, and are told to close them."""

END_SECONDS: Final = 30
"""For the engine to end itself once nothing runs any more, or running requests are out of time."""


def grace_seconds(spec: Spec) -> int:
    """Seconds between a pod's deletion and SIGKILL."""
    return PAUSE_SECONDS + spec.rollout.drain_timeout_seconds + END_SECONDS


def lifecycle() -> dict[str, Any]:
    """The engine container's hooks. Not the `sleep` action: API servers before 1.30 do not know it."""
    return {"preStop": {"exec": {"command": ["sh", "-c", f"touch {LEAVING}; exec sleep {PAUSE_SECONDS}"]}}}
