"""`spec` of a DSDDeployment: what is hot (schedule, smoothing), what scales (replicas), what stands beside the pods
(monitoring, service, networkPolicy, podDisruptionBudget, gateway, and what a cache's claim is like), how pods are
replaced (most of rollout), and the envelope: the rest (`api.envelope`)."""

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema

from dsd_operator.api.cache import Cache
from dsd_operator.api.cel import Rule
from dsd_operator.api.common import EMPTIED, ApiModel, defaults_of, field_extra
from dsd_operator.api.disruption import PodDisruptionBudget
from dsd_operator.api.drafter import Drafter
from dsd_operator.api.engine import Engine
from dsd_operator.api.gateway import Gateway
from dsd_operator.api.model import Model
from dsd_operator.api.monitoring import Monitoring
from dsd_operator.api.network import NetworkPolicy
from dsd_operator.api.pod import POD_TEMPLATE_SCHEMA, RESOURCES_SCHEMA, Rollout, SharedMemory, Startup
from dsd_operator.api.service import Service
from dsd_operator.api.spec_rules import RANGE_RULES, SCHEDULE_RULES, SPEC_RULES
from dsd_runtime.schedule import MAX_RANGES, ScheduleRange, Smoothing


def _in_force(smoothing: Smoothing | None) -> Smoothing | None:
    """None for every way to say off: one form on the wire, and no change from one of them to another."""
    return None if smoothing is None or smoothing.off else smoothing


class Spec(ApiModel):
    """What the user wants."""

    cel_rules: ClassVar[tuple[Rule, ...]] = SPEC_RULES

    model: Model = Field(description="The model that is served.")
    drafter: Drafter = Field(description="How tokens are drafted, and the largest number of them (K).")
    schedule: tuple[Annotated[ScheduleRange, Field(json_schema_extra=field_extra(*RANGE_RULES))], ...] = Field(
        min_length=1,
        max_length=MAX_RANGES,
        description=(
            "Which K is used at which batch size. HOT: a change is applied to the running pods within seconds, "
            "without a restart and without losing a request. The first range starts at 1, ranges ascend and do not "
            "overlap. In a gap the K before it stays in use, above the last range the last K. Always given as a "
            "whole."
        ),
        json_schema_extra=field_extra(*SCHEDULE_RULES, list_type="atomic"),
    )
    smoothing: Annotated[Smoothing | None, AfterValidator(_in_force)] = Field(
        default=None,
        description=(
            "Keeps K from changing back and forth while the batch size hovers around a boundary of the schedule. HOT, "
            "as the schedule. Off unless given: every step uses exactly the K of its range."
        ),
        json_schema_extra=dict(EMPTIED),
    )
    engine: Engine = Field(
        default_factory=Engine,
        description="vLLM: image, model runner, limits, arguments.",
        json_schema_extra=defaults_of(Engine),
    )
    replicas: int = Field(
        default=1,
        ge=0,
        le=10000,
        description="Number of pods, each a whole engine. Scaled by kubectl scale and autoscalers.",
    )
    resources: Annotated[dict[str, Any], WithJsonSchema(RESOURCES_SCHEMA)] = Field(
        default_factory=dict,
        description=(
            "Compute resources of the engine container, as in a Pod: requests, limits, claims. Ask for GPUs here "
            "(nvidia.com/gpu under limits). Quote fractions: cpu: '0.5'."
        ),
    )
    shared_memory: SharedMemory = Field(
        default_factory=SharedMemory,
        description="Memory-backed /dev/shm of the engine container.",
        json_schema_extra=dict(EMPTIED),
    )
    startup: Startup = Field(
        default_factory=Startup,
        description="How long a pod may take to start.",
        json_schema_extra=defaults_of(Startup),
    )
    rollout: Rollout = Field(
        default_factory=Rollout,
        description="How pods are replaced when a change needs a restart.",
        json_schema_extra=defaults_of(Rollout),
    )
    cache: Cache = Field(
        default_factory=Cache,
        description=(
            "A claim for weights and for what vLLM compiles, mounted at /cache: a pod that starts a second time "
            "downloads and compiles nothing."
        ),
        json_schema_extra=defaults_of(Cache),
    )
    pod_template: Annotated[dict[str, Any], WithJsonSchema(POD_TEMPLATE_SCHEMA)] = Field(
        default_factory=dict,
        description=(
            "Merged into the pods: metadata (labels, annotations) and spec, as in a Deployment's template. Containers, "
            "volumes and env merge by name; the engine's container is called engine. Tolerations are appended."
        ),
    )
    monitoring: Monitoring = Field(
        default_factory=Monitoring,
        description="What Prometheus is told of the engines. A change touches no pod.",
        json_schema_extra=dict(EMPTIED),
    )
    service: Service = Field(
        default_factory=Service,
        description="The Service in front of the engines. A change touches no pod.",
        json_schema_extra=defaults_of(Service),
    )
    network_policy: NetworkPolicy = Field(
        default_factory=NetworkPolicy,
        description="Who may reach the pods. A change touches no pod.",
        json_schema_extra=defaults_of(NetworkPolicy),
    )
    pod_disruption_budget: PodDisruptionBudget = Field(
        default_factory=PodDisruptionBudget,
        description="How many pods the drain of nodes may take at once. A change touches no pod.",
        json_schema_extra=defaults_of(PodDisruptionBudget),
    )
    gateway: Gateway = Field(
        default_factory=Gateway,
        description="The engines behind a Gateway: an InferencePool, an HTTPRoute. A change touches no pod.",
        json_schema_extra=dict(EMPTIED),
    )
