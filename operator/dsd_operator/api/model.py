"""`spec.model`: what is served."""

from typing import Annotated

from pydantic import Field

from dsd_operator.api.common import ApiModel, ObjectName, field_extra
from dsd_operator.api.model_name import ModelName


class SecretKeyRef(ApiModel):
    """One key of a Secret in the same namespace."""

    name: ObjectName = Field(description="Name of a Secret in the namespace of this resource.")
    key: str = Field(
        min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$", description="Key inside that Secret, e.g. token."
    )


class Model(ApiModel):
    """The target model."""

    name: ModelName = Field(
        description=(
            "What vLLM loads: a Hugging Face id (acme/llama-8b), an absolute path inside the pod (mount it with "
            "podTemplate), or an s3:// or gs:// address for vLLM's own loaders. Changing it restarts the pods."
        )
    )
    revision: str | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        description="Branch, tag or commit of the model on the hub. Quote it if it looks like a number or a date.",
    )
    served_names: tuple[Annotated[str, Field(min_length=1, max_length=256)], ...] = Field(
        default=(),
        max_length=32,
        description=(
            "Names under which clients ask for the model; the first one is also the model_name label of the metrics. "
            "Default: the value of name."
        ),
        json_schema_extra=field_extra(list_type="set"),
    )
    token_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="Secret with the Hugging Face token for gated models; it reaches the engine as HF_TOKEN.",
    )
