"""Every reason and condition type that a DSDDeployment's status, Events and metrics can carry. One enum each."""

from enum import StrEnum


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
    STARTING = "Starting"
    SCHEDULING_GATED = "SchedulingGated"

    # The resource, or what stands in its way.
    INVALID_SPEC = "InvalidSpec"
    APPLY_FAILED = "ApplyFailed"
    FOREIGN_OBJECT = "ForeignObject"
    API_MISSING = "ApiMissing"
    POD_CREATION_FAILED = "PodCreationFailed"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"

    # Pods.
    UNSCHEDULABLE = "Unschedulable"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    CONTAINER_CONFIG_ERROR = "ContainerConfigError"
    CONTAINER_START_ERROR = "ContainerStartError"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    OOM_KILLED = "OOMKilled"
    NO_PODS_READY = "NoPodsReady"

    # The schedule in the pods; the values of observed.PushState that are not Applied.
    POD_NOT_READY = "PodNotReady"
    POD_UNREACHABLE = "PodUnreachable"
    TOKEN_REFUSED = "TokenRefused"
    REFUSED_BY_ENGINE = "RefusedByEngine"
    RUNTIME_PLUGIN_OFF = "RuntimePluginOff"
