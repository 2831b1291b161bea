"""`spec.drafter`: how tokens are drafted, and the most that can ever be drafted."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema

from dsd_operator.api.cel import Rule
from dsd_operator.api.common import ApiModel, PositiveInt32, field_extra
from dsd_operator.api.method_rules import DRAFTER_METHOD_RULES
from dsd_operator.api.parameters import PARAMETERS_SCHEMA
from dsd_runtime.schedule import MAX_SPECULATIVE_TOKENS

Tokens = Annotated[int, Field(ge=0, le=MAX_SPECULATIVE_TOKENS)]


class PromptLookup(ApiModel):
    """Window of the ngram methods."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.min) || has(self.max)", "set max, or min and max, or remove promptLookup"),
        Rule("!has(self.min) || !has(self.max) || self.min <= self.max", "min must not be above max"),
    )

    min: PositiveInt32 | None = Field(
        default=None,
        description="Shortest n-gram that is looked up. vLLM's own default when only max is given: the same as max.",
    )
    max: PositiveInt32 | None = Field(
        default=None,
        description="Longest n-gram that is looked up. vLLM's own default when only min is given: the same as min.",
    )


class Drafter(ApiModel):
    """The drafter. Every change of it restarts the pods; only the schedule is hot."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        *DRAFTER_METHOD_RULES,
        Rule(
            "!has(self.preparedTokens) || self.preparedTokens.all(k, k <= self.numSpeculativeTokens)",
            "a K above numSpeculativeTokens cannot be prepared; lower it, or raise numSpeculativeTokens",
            field_path=".preparedTokens",
        ),
    )

    method: str = Field(
        max_length=64,
        description=(
            "Speculative decoding method, in vLLM's spelling. eagle, eagle3, draft_model and most others need model; "
            "mtp and dspark may have one; ngram, ngram_gpu and suffix have none."
        ),
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description=(
            "The draft model or speculator head; same forms as spec.model.name. For custom_class the dotted name of a "
            "Python class."
        ),
    )
    revision: str | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        description="Branch, tag or commit of the draft model on the hub.",
    )
    num_speculative_tokens: int = Field(
        ge=1,
        le=MAX_SPECULATIVE_TOKENS,
        description=(
            "The largest number of draft tokens (K) the engine can ever use. vLLM sizes its buffers by it when it "
            "starts, so raising it restarts the pods, while the schedule below it changes in place. It is not the K "
            "in use: that is what spec.schedule says."
        ),
    )
    prepared_tokens: tuple[Tokens, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=32,
        description=(
            "The K values for which vLLM prepares (captures) CUDA graphs when it starts; each costs start-up time and "
            "GPU memory. A scheduled K outside this set is correct but may run slower; status says so. Default: every "
            "K up to a maximum of 4, else 0, 1, half of the maximum rounded up, and the maximum."
        ),
        json_schema_extra=field_extra(list_type="set"),
    )
    tensor_parallel_size: PositiveInt32 | None = Field(
        default=None,
        description=(
            "Tensor parallel size of the draft model: 1 or the same as engine.tensorParallelSize; draft_model needs "
            "the same. Default: vLLM decides."
        ),
    )
    prompt_lookup: PromptLookup | None = Field(
        default=None, description="N-gram window, for the methods ngram and ngram_gpu only."
    )
    parameters: Annotated[dict[str, Any], WithJsonSchema(PARAMETERS_SCHEMA)] = Field(
        default_factory=dict,
        description=(
            "Further keys of vLLM's speculative config, passed on as they are (for example quantization, "
            "draft_sample_method, parallel_drafting). Keys that have a field here are refused."
        ),
        json_schema_extra={"default": {}},
    )
