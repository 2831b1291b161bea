"""`spec.engine`: vLLM itself."""

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, WithJsonSchema

from dsd_operator.api.argument_rules import ENGINE_ARGUMENT_RULES, ENV_RULES, ITEM_RULES
from dsd_operator.api.cel import Rule, raw
from dsd_operator.api.common import ApiModel, PositiveInt32, field_extra

ModelRunner = Literal["Auto", "V1", "V2"]


MAX_NODES: Final = 256

_FREE_OBJECT: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


_NOT_AN_IMAGE: Final = r"^[a-z]+://|\s"


class EnvVar(ApiModel):
    """One environment variable of the engine container."""

    cel_rules: ClassVar[tuple[Rule, ...]] = ENV_RULES

    name: str = Field(
        min_length=1,
        max_length=256,
        pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$",
        description="Name of the variable. Names that the operator sets itself are refused.",
    )
    value: str | None = Field(
        default=None, max_length=32768, description="Value, a string: quote numbers and booleans. Not with valueFrom."
    )
    value_from: Annotated[dict[str, Any], WithJsonSchema(_FREE_OBJECT)] | None = Field(
        default=None,
        description="Source of the value, as in a Pod: secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef.",
    )


class Engine(ApiModel):
    """vLLM's image, runner and limits. Every change restarts the pods."""

    cel_rules: ClassVar[tuple[Rule, ...]] = ENGINE_ARGUMENT_RULES

    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description=(
            "Image with vLLM and the dsd-runtime package; a tag, a digest, or both. "
            "Default: the runtime image the operator was installed with."
        ),
        json_schema_extra=field_extra(
            Rule(
                f"!self.matches({raw(_NOT_AN_IMAGE)})",
                "an image has no https:// in front and no white space inside, e.g. registry.example/vllm:v1",
            )
        ),
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        default=None, description="When the kubelet pulls the image. Default: Kubernetes' own, by the tag."
    )
    model_runner: ModelRunner = Field(
        default="Auto",
        description=(
            "vLLM's model runner. Auto leaves the choice to vLLM. It decides which K a method can honour: on V2 some "
            "methods draft the maximum whatever K is; some methods exist on one runner only."
        ),
    )
    max_num_seqs: PositiveInt32 | None = Field(
        default=None,
        description=(
            "Most requests in one step, the largest batch size a schedule can meet. Default: vLLM's own (1024 on large "
            "GPUs, 256 on others). Schedule ranges may go beyond it."
        ),
    )
    max_model_len: PositiveInt32 | None = Field(
        default=None,
        description=(
            "Longest context in tokens, prompt and output together. Default: the model's own. "
            "For vLLM's auto fit put --max-model-len=auto into extraArgs instead."
        ),
    )
    dtype: Literal["auto", "bfloat16", "float", "float16", "float32", "half"] | None = Field(
        default=None, description="Data type of weights and activations. Default: vLLM's auto."
    )
    quantization: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Quantization of the target model, as vLLM names it. Default: what the model's config says.",
    )
    tensor_parallel_size: PositiveInt32 | None = Field(
        default=None,
        description=(
            "GPUs over which the model is split, in all nodes of one engine together; ask for the share of one node in "
            "spec.resources. Default: 1."
        ),
    )
    nodes: int = Field(
        default=1,
        ge=1,
        le=MAX_NODES,
        description=(
            "Nodes that one engine spans, for a model that needs more GPUs than one node has. Above 1 each replica is "
            "a group of that many pods, made by a LeaderWorkerSet (leaderworkerset.x-k8s.io/v1) in place of a "
            "Deployment, and tensorParallelSize must be a multiple of it. A change moves engines as a roll-out does."
        ),
    )
    gpu_memory_utilization: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the GPU's memory vLLM may use, above 0 up to 1. Default: vLLM's own.",
    )
    extra_args: tuple[Annotated[str, Field(max_length=4096, json_schema_extra=field_extra(*ITEM_RULES))], ...] = Field(
        default=(),
        max_length=64,
        description=(
            "Further arguments of vllm serve, one per item: ['--seed=0'] or ['--seed', '0'], never '--seed 0' in one "
            "item. Options that have a field here, or that the operator sets itself, are refused in every spelling."
        ),
        json_schema_extra=field_extra(list_type="atomic"),
    )
    env: tuple[EnvVar, ...] = Field(
        default=(),
        max_length=128,
        description="Further environment variables of the engine container, in this order; each name once.",
        json_schema_extra=field_extra(list_type="map", list_map_keys=["name"]),
    )
