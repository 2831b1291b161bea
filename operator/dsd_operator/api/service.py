"""`spec.service`: how the engines are reached. Nothing of it is in the envelope: no pod ever rolls."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, WithJsonSchema

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import ApiModel, Cidr, field_extra
from dsd_operator.api.labels import ANNOTATIONS_SCHEMA, LABELS_SCHEMA

DEFAULT_PORT: Final = 8000
_MAX_PORT: Final = 65535

_CLASS_OF: Final = "has({0}.loadBalancerClass) ? {0}.loadBalancerClass : ''"
_SAME_CLASS: Final = f"({_CLASS_OF.format('self')}) == ({_CLASS_OF.format('oldSelf')})"


class Service(ApiModel):
    """The Service in front of the pods."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.nodePort) || self.type != 'ClusterIP'",
            "a node port needs type NodePort or LoadBalancer",
            field_path=".nodePort",
        ),
        Rule(
            "!has(self.externalTrafficPolicy) || self.type != 'ClusterIP'",
            "traffic from outside needs type NodePort or LoadBalancer",
            field_path=".externalTrafficPolicy",
        ),
        Rule(
            "!has(self.loadBalancerClass) || self.type == 'LoadBalancer'",
            "a load balancer's class needs type LoadBalancer",
            field_path=".loadBalancerClass",
        ),
        Rule(
            "!has(self.loadBalancerSourceRanges) || self.type == 'LoadBalancer'",
            "source ranges need type LoadBalancer",
            field_path=".loadBalancerSourceRanges",
        ),
        Rule(
            f"self.type != 'LoadBalancer' || oldSelf.type != 'LoadBalancer' || {_SAME_CLASS}",
            "Kubernetes cannot change the class of a load balancer: set another type first, then LoadBalancer with the "
            "new class",
            field_path=".loadBalancerClass",
        ),
    )

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP",
        description=(
            "Who can reach the engines: ClusterIP, the cluster; NodePort, who reaches a node; LoadBalancer, who "
            "reaches the one that the cloud makes. vLLM asks nobody for a password unless told to (--api-key)."
        ),
    )
    port: int = Field(
        default=DEFAULT_PORT,
        ge=1,
        le=_MAX_PORT,
        description="Port of the Service; status.url names it. Engines listen on 8000 whatever it is.",
    )
    node_port: int | None = Field(
        default=None,
        ge=1,
        le=_MAX_PORT,
        description="Port on every node, from the cluster's range (30000 to 32767 as a rule). Default: a free one.",
    )
    annotations: Annotated[dict[str, str], WithJsonSchema(ANNOTATIONS_SCHEMA)] = Field(
        default_factory=dict,
        description="Annotations of the Service, e.g. a cloud's settings for its load balancer.",
    )
    labels: Annotated[dict[str, str], WithJsonSchema(LABELS_SCHEMA)] = Field(
        default_factory=dict,
        description="Labels of the Service beside the operator's own, which are always there.",
    )
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] | None = Field(
        default=None,
        description=(
            "Whether the Service has an address of one IP family or of both. Default: Kubernetes', one. Engines "
            "listen on both where the node has both."
        ),
    )
    external_traffic_policy: Literal["Cluster", "Local"] | None = Field(
        default=None,
        description=(
            "Where traffic from outside may go: Cluster, to any pod; Local, to pods on the node it came to, which "
            "keeps the client's address. Default: Kubernetes', Cluster."
        ),
    )
    load_balancer_class: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        description="Which implementation makes the load balancer. Default: the cluster's own.",
    )
    load_balancer_source_ranges: tuple[Cidr, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Ranges of client addresses that the load balancer lets in. Default: all.",
        json_schema_extra=field_extra(list_type="atomic"),
    )
