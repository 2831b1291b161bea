"""`status` of a DSDDeployment, as the CRD declares it.

Only the schema: the operator rebuilds the status from what it observes (package `status`) and compares plain dicts.
"""

from typing import Literal

from pydantic import Field

from dsd_operator.api.common import ApiModel, field_extra

MAX_OUT_OF_SYNC = 10
"""Most pods that status names; status is no place for data that grows with the fleet."""


class Condition(ApiModel):
    """One condition, by the Kubernetes API conventions."""

    type: str = Field(max_length=316, description="Available, Progressing, ScheduleApplied or Ready.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the condition holds.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation of the spec that this was found out about."
    )
    last_transition_time: str = Field(
        description="When status last changed (not reason or message).", json_schema_extra={"format": "date-time"}
    )
    reason: str = Field(
        min_length=1, max_length=1024, description="Why, in one CamelCase word that programs may compare."
    )
    message: str = Field(max_length=32768, description="Why, for people: what is wrong, where, and what to do.")


class OutOfSyncPod(ApiModel):
    """A pod that can serve and is not known to use the schedule."""

    pod: str = Field(description="Name of the pod.")
    reason: str = Field(
        description=(
            "PodNotReady, PodUnreachable (its mounted file still brings the schedule), TokenRefused, RefusedByEngine "
            "or RuntimePluginOff (this engine takes a schedule at start only)."
        )
    )


class ScheduleStatus(ApiModel):
    """How far the schedule has come."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation of the spec whose schedule this is about."
    )
    hash: str | None = Field(default=None, description="Hash of the schedule that the pods should use.")
    applied: str | None = Field(default=None, description="podsApplied/podsTotal, for kubectl get.")
    pods_applied: int | None = Field(default=None, ge=0, description="Pods that said that they use this schedule.")
    pods_unknown: int | None = Field(
        default=None, ge=0, description="Pods that could not be asked; the file mounted in them brings the schedule."
    )
    pods_total: int | None = Field(default=None, ge=0, description="Pods that can serve: not failed, not succeeded.")
    out_of_sync: tuple[OutOfSyncPod, ...] = Field(
        default=(),
        max_length=MAX_OUT_OF_SYNC,
        description=f"Pods that are not known to use the schedule, at most {MAX_OUT_OF_SYNC}.",
        json_schema_extra=field_extra(list_type="atomic"),
    )


class Status(ApiModel):
    """What the operator observes. Rebuilt from the cluster at any time; nothing is stored here only."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation of the spec that this status is about."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        max_length=32,
        description=(
            "Available: at least one pod serves. Progressing: a roll-out is under way. ScheduleApplied: every pod that "
            "can serve uses the schedule. Ready: all of the spec is in force."
        ),
        json_schema_extra=field_extra(list_type="map", list_map_keys=["type"]),
    )
    replicas: int | None = Field(default=None, ge=0, description="Pods that exist.")
    ready_replicas: int | None = Field(default=None, ge=0, description="Pods that serve.")
    updated_replicas: int | None = Field(default=None, ge=0, description="Pods made from the current spec.")
    selector: str | None = Field(default=None, description="Label selector of the pods, for autoscalers.")
    ready: str | None = Field(default=None, description="readyReplicas/replicas wanted, for kubectl get.")
    url: str | None = Field(default=None, description="Where clients inside the cluster reach the engines.")
    schedule: ScheduleStatus | None = Field(default=None, description="How far the schedule has come.")
