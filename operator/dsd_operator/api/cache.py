"""`spec.cache`: a volume that outlives the pods, for weights and for what vLLM compiles."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import MAX_INT32, QUANTITY_HINT, ApiModel, ObjectName, field_extra

AccessMode = Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]

_SIZE_HINT: Final = f"not a size: {QUANTITY_HINT}, above 0"

WAY_OUT: Final = "set it back, or make a claim of your own, copy what is worth keeping, and name it in existingClaim"
"""What to do where a claim cannot become what is asked: the API server's words, and the operator's."""


def _needs_size(field: str) -> Rule:
    return Rule(
        f"!has(self.{field}) || has(self.size)",
        f"{field} describes the claim that the operator makes: give its size too, or remove {field}",
        field_path=f".{field}",
    )


def _unchangeable(field: str, default: str) -> Rule:
    """A transition rule: Kubernetes lets nobody change these fields of a claim."""
    old, new = (f"(has({side}.{field}) ? {side}.{field} : '{default}')" for side in ("oldSelf", "self"))
    return Rule(
        f"!has(oldSelf.size) || !has(self.size) || {old} == {new}",
        f"{field} of a claim cannot change; {WAY_OUT}",
        f"'{field} of a claim cannot change: it is ' + {old} + ', and was to become ' + {new} + '; {WAY_OUT}'",
        f".{field}",
    )


class Cache(ApiModel):
    """Where weights and compiled code are kept between two starts. Without a claim they go with the pod."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("!(has(self.existingClaim) && has(self.size))", "existingClaim and size are both given; keep one"),
        _needs_size("storageClass"),
        _needs_size("accessMode"),
        Rule(
            "!has(oldSelf.size) || !has(self.size) || !isQuantity(oldSelf.size) || !isQuantity(self.size) || "
            "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
            f"a claim cannot shrink; {WAY_OUT}",
            "'a claim cannot shrink: its size is ' + oldSelf.size + ', and was to become ' + self.size + "
            f"'; {WAY_OUT}'",
            ".size",
        ),
        _unchangeable("storageClass", "the default class"),
        _unchangeable("accessMode", "ReadWriteOnce"),
    )

    existing_claim: ObjectName | None = Field(
        default=None,
        description=(
            "Name of a PersistentVolumeClaim in the namespace of this resource. The operator mounts it and never "
            "changes or deletes it."
        ),
    )
    size: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description=(
            "Make a claim of this size, e.g. 100Gi. It can grow (touching no pod) where its class allows that, never "
            "shrink. It stays when this field goes, and is deleted with the resource: to keep it longer, make it "
            "yourself and name it in existingClaim."
        ),
        json_schema_extra=field_extra(
            Rule("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))", _SIZE_HINT)
        ),
    )
    storage_class: Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")] | None = Field(
        default=None,
        description=(
            "StorageClass of that claim. Default: the cluster's default class. An empty string takes a volume that "
            "exists and was made for it. Cannot change."
        ),
    )
    access_mode: AccessMode | None = Field(
        default=None,
        description=(
            "Access mode of that claim. Default: ReadWriteOnce, for one pod; more pods need ReadWriteMany. Cannot "
            "change."
        ),
    )
    offline: bool = Field(
        default=False,
        description=(
            "Whether vLLM goes without the hub and reports no usage: models must be on the claim, or on a volume of "
            "your own. A model that is missing fails at once instead of being downloaded."
        ),
    )
    fs_group: int | None = Field(
        default=None,
        ge=0,
        le=MAX_INT32,
        description=(
            "Group that the kubelet gives the volume's files to, so that an engine which is not root may write a fresh "
            "one. 0: none, where the platform hands out groups (OpenShift). Default: the operator's setting."
        ),
    )

    @property
    def on_claim(self) -> bool:
        """Whether there is a claim, ours or an existing one."""
        return self.existing_claim is not None or self.size is not None

    @property
    def mode(self) -> AccessMode:
        """Access mode of the claim that the operator makes."""
        return self.access_mode or "ReadWriteOnce"
