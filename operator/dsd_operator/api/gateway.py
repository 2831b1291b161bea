"""`spec.gateway`: the engines behind a Gateway. Nothing of it is in the envelope: no pod ever rolls."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import EMPTIED, ApiModel, ObjectName, field_extra

_MAX_PORT: Final = 65535
_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_HOSTNAME: Final = rf"^([*]\.)?{_LABEL}(\.{_LABEL})*$"
_SECTION: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"

Port = Annotated[int, Field(ge=1, le=_MAX_PORT)]


class EndpointPicker(ApiModel):
    """The endpoint picker, which chooses an engine for each request."""

    name: ObjectName = Field(description="Name of its Service, in this namespace.")
    port: Port = Field(default=9002, description="Port of its Service. Default: the one that its own charts use.")
    failure_mode: Literal["FailOpen", "FailClose"] = Field(
        default="FailClose",
        description=(
            "What becomes of requests while it does not answer: FailOpen, the Gateway chooses an engine itself; "
            "FailClose, they are refused."
        ),
    )


class InferencePool(ApiModel):
    """The InferencePool beside the pods (inference.networking.k8s.io/v1)."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!self.enabled || has(self.endpointPicker)",
            "an InferencePool needs an endpoint picker: name its Service",
            field_path=".endpointPicker",
        ),
    )

    enabled: bool = Field(
        default=False,
        description=(
            "Make an InferencePool of the engines, for Gateways that choose among them by their load. Where its CRD is "
            "not installed, the condition Ready says so, and pods and schedule go on."
        ),
    )
    endpoint_picker: EndpointPicker | None = Field(
        default=None, description="The endpoint picker's Service. Installing it is not the operator's affair."
    )


class ParentRef(ApiModel):
    """A Gateway that the route is attached to."""

    name: ObjectName = Field(description="Name of the Gateway.")
    namespace: ObjectName | None = Field(
        default=None,
        description="Its namespace. Default: this one. The Gateway's listeners must allow routes from here.",
    )
    section_name: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        pattern=_SECTION,
        description="Name of one of its listeners. Default: all that fit.",
    )
    port: Port | None = Field(default=None, description="Port of its listeners. Default: any.")


Hostname = Annotated[str, Field(min_length=1, max_length=253, pattern=_HOSTNAME)]


class HttpRoute(ApiModel):
    """The HTTPRoute beside the pods (gateway.networking.k8s.io/v1)."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!self.enabled || (has(self.parentRefs) && self.parentRefs.size() > 0)",
            "an HTTPRoute needs a Gateway: name it",
            field_path=".parentRefs",
        ),
    )

    enabled: bool = Field(
        default=False,
        description=(
            "Make an HTTPRoute for paths below /v1: to the InferencePool if there is one, else to the Service. Where "
            "its CRD is not installed, the condition Ready says so, and pods and schedule go on."
        ),
    )
    parent_refs: tuple[ParentRef, ...] = Field(
        default=(),
        max_length=32,
        description="The Gateways, as in an HTTPRoute.",
        json_schema_extra=field_extra(list_type="atomic"),
    )
    hostnames: tuple[Hostname, ...] = Field(
        default=(),
        max_length=16,
        description="Host names that requests must have, e.g. llama.example.org or *.example.org. Default: any.",
        json_schema_extra=field_extra(list_type="atomic"),
    )


class Gateway(ApiModel):
    """How the engines are reached through a Gateway."""

    inference_pool: InferencePool = Field(
        default_factory=InferencePool,
        description="An InferencePool of the engines.",
        json_schema_extra=dict(EMPTIED),
    )
    http_route: HttpRoute = Field(
        default_factory=HttpRoute,
        description="An HTTPRoute to the engines.",
        json_schema_extra=dict(EMPTIED),
    )
