"""Every reason and condition type that a DSDDeployment's status, Events and metrics can carry. One enum each."""

from enum import StrEnum
from typing import Final


class ConditionType(StrEnum):
    """The conditions; every pass writes all of them."""

    AVAILABLE = "Available"
    PROGRESSING = "Progressing"
    SCHEDULE_APPLIED = "ScheduleApplied"
    READY = "Ready"


class Reason(StrEnum):
    """Why a condition is as it is; docs/reference/conditions.md explains each."""

    # All is well.
    AVAILABLE = "Available"
    ROLLED_OUT = "RolledOut"
    APPLIED = "Applied"
    READY = "Ready"
    SCALED_TO_ZERO = "ScaledToZero"

    # As asked, and nothing for users.
    SYNTHETIC_ACCEPTANCE = "SyntheticAcceptance"

    # On the way.
    CREATING = "Creating"
    ROLLING_OUT = "RollingOut"
    PENDING = "Pending"
    CONTAINER_CREATING = "ContainerCreating"
    STARTING = "Starting"
    SCHEDULING_GATED = "SchedulingGated"

    # The resource, or what stands in its way.
    INVALID_SPEC = "InvalidSpec"
    APPLY_FAILED = "ApplyFailed"
    FOREIGN_OBJECT = "ForeignObject"
    API_MISSING = "ApiMissing"
    CACHE_NOT_AS_ASKED = "CacheNotAsAsked"
    POD_CREATION_FAILED = "PodCreationFailed"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    DEGRADED = "Degraded"

    # Pods.
    UNSCHEDULABLE = "Unschedulable"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    CONTAINER_CONFIG_ERROR = "ContainerConfigError"
    CONTAINER_START_ERROR = "ContainerStartError"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    OOM_KILLED = "OOMKilled"
    STARTUP_TIMEOUT = "StartupTimeout"
    NO_PODS_READY = "NoPodsReady"

    # Why engines end; the reasons of dsd_runtime.causes.
    MODEL_NOT_FOUND = "ModelNotFound"
    MODEL_ACCESS_DENIED = "ModelAccessDenied"
    MODEL_HUB_UNREACHABLE = "ModelHubUnreachable"
    MODEL_INCOMPLETE = "ModelIncomplete"
    MODEL_UNSUPPORTED = "ModelUnsupported"
    SPECULATION_UNSUPPORTED = "SpeculationUnsupported"
    ENGINE_ARGUMENT_INVALID = "EngineArgumentInvalid"
    ENGINE_OUT_OF_MEMORY = "EngineOutOfMemory"
    DEVICE_NOT_FOUND = "DeviceNotFound"
    STORAGE_FULL = "StorageFull"
    STORAGE_ACCESS_DENIED = "StorageAccessDenied"

    # The schedule in the pods; the values of observed.PushState that are not Applied.
    POD_NOT_READY = "PodNotReady"
    POD_UNREACHABLE = "PodUnreachable"
    TOKEN_REFUSED = "TokenRefused"
    REFUSED_BY_ENGINE = "RefusedByEngine"
    RUNTIME_PLUGIN_OFF = "RuntimePluginOff"


ON_THE_WAY: Final = frozenset(
    {
        Reason.CREATING,
        Reason.ROLLING_OUT,
        Reason.PENDING,
        Reason.CONTAINER_CREATING,
        Reason.STARTING,
        Reason.SCHEDULING_GATED,
        Reason.NO_PODS_READY,
        Reason.POD_NOT_READY,
    }
)
"""Nothing is wrong that is known of, and waiting may be all that it takes."""

CANNOT_START: Final = frozenset(
    {
        Reason.MODEL_NOT_FOUND,
        Reason.MODEL_ACCESS_DENIED,
        Reason.MODEL_INCOMPLETE,
        Reason.MODEL_UNSUPPORTED,
        Reason.SPECULATION_UNSUPPORTED,
        Reason.ENGINE_ARGUMENT_INVALID,
        Reason.ENGINE_OUT_OF_MEMORY,
    }
)
"""Why an engine will end each time that it starts, until somebody changes something."""
