"""What shapes the pods around the engine: memory for workers, start-up time, roll-out."""

from pydantic import Field

from dsd_operator.api.common import MAX_INT32, ApiModel, Quantity


class SharedMemory(ApiModel):
    """The memory-backed volume at /dev/shm."""

    size_limit: Quantity | None = Field(
        default=None,
        description=(
            "Upper limit of /dev/shm, which vLLM's worker processes talk through, e.g. 8Gi; it counts against the "
            "container's memory limit. Default: no limit of its own."
        ),
    )


class Startup(ApiModel):
    """How long a pod may take to become ready for the first time."""

    timeout_seconds: int = Field(
        default=3600,
        ge=30,
        le=86400,
        description=(
            "Seconds from the container's start until it must serve; then the kubelet restarts it. Cover the download "
            "of the model, loading and graph capture."
        ),
    )


class Rollout(ApiModel):
    """How pods are replaced when something changes that needs a restart."""

    max_surge: int = Field(
        default=0,
        ge=0,
        le=MAX_INT32,
        description="Pods that may exist beyond replicas during a roll-out. Each needs free GPUs; 0 needs none.",
    )
    max_unavailable: int = Field(
        default=1,
        ge=0,
        le=MAX_INT32,
        description="Pods that may be missing during a roll-out. Not 0 together with maxSurge 0.",
    )
