"""CEL rules over the schedule and over the spec as a whole, where one field limits another."""

from typing import Final

from dsd_operator.api.cel import Rule, quote
from dsd_operator.api.method_rules import support_rules
from dsd_runtime.schedule import MAX_RANGES


def _first(condition: str) -> str:
    """CEL: the index, as text, of the first range for which `condition` (a template with {i} and {j} = i + 1) holds.

    Written out for every index: the API server cannot bound the size of `string(n)`, so it refuses to print numbers.
    """
    last = MAX_RANGES - 1
    chain = "".join(f"{condition.format(i=i, j=i + 1)} ? {quote(str(i))} : " for i in range(last))
    return f"({chain}{quote(str(last))})"


SCHEDULE_RULES: Final = (
    Rule(
        "self.size() == 0 || self[0].startBatchSize == 1",
        "the first range must start at 1, so that every batch size has a K",
    ),
    Rule(
        "self.map(r, r.startBatchSize).isSorted()",
        "ranges must ascend: sort them by startBatchSize",
    ),
    Rule(
        "self.all(a, "
        "self.filter(b, b.startBatchSize <= a.endBatchSize && a.startBatchSize <= b.endBatchSize).size() <= 1)",
        "ranges must not overlap: each batch size may be in one range only",
        "'ranges overlap: range [' + "
        + _first("self.size() > {j} && self[{j}].startBatchSize <= self[{i}].endBatchSize")
        + " + '] ends at or after the start of the next one; each batch size may be in one range only'",
    ),
)
"""Rules on the schedule (`self`)."""

RANGE_RULES: Final = (
    Rule("self.startBatchSize <= self.endBatchSize", "startBatchSize must not be above endBatchSize; swap them"),
)
"""Rules on one range (`self`)."""

_MAXIMUM: Final = "self.drafter.numSpeculativeTokens"
_TARGET_SIZE: Final = "(has(self.engine.tensorParallelSize) ? self.engine.tensorParallelSize : 1)"
_NODES: Final = "self.engine.nodes"
_DRAFT_SIZE: Final = "self.drafter.tensorParallelSize"

_ONE_POD_CLAIM: Final = (
    "has(self.cache.size) && !(has(self.cache.accessMode) && self.cache.accessMode == 'ReadWriteMany')"
)
_SHARED: Final = (
    "set cache.accessMode to ReadWriteMany (where the claim is made already: name one of that mode in existingClaim)"
)

CACHE_RULES: Final = (
    Rule(
        f"!({_ONE_POD_CLAIM}) || !has(self.replicas) || self.replicas <= 1",
        "a cache of access mode ReadWriteOnce or ReadWriteOncePod serves one pod, and replicas is above 1; "
        f"{_SHARED}, or keep replicas at 1",
        field_path=".cache",
    ),
    Rule(
        f"!({_ONE_POD_CLAIM}) || !has(self.engine.nodes) || self.engine.nodes == 1",
        "a cache of access mode ReadWriteOnce or ReadWriteOncePod serves one pod, and an engine over several nodes has "
        f"one on each; {_SHARED}, or engine.nodes to 1",
        field_path=".cache",
    ),
    Rule(
        f"!({_ONE_POD_CLAIM}) || !has(self.rollout.maxSurge) || self.rollout.maxSurge == 0",
        "rollout.maxSurge above 0 starts a new pod beside the old one, and a cache of access mode ReadWriteOnce or "
        f"ReadWriteOncePod serves one pod; {_SHARED}, or maxSurge to 0",
        field_path=".cache",
    ),
)
"""Rules on the spec (`self`): how many pods may use a claim of its own."""

SPEC_RULES: Final = (
    *CACHE_RULES,
    Rule(
        f"self.schedule.all(r, r.numSpeculativeTokens <= {_MAXIMUM})",
        "numSpeculativeTokens of a range must not be above drafter.numSpeculativeTokens",
        "'range [' + "
        + _first(f"self.schedule.size() > {{i}} && self.schedule[{{i}}].numSpeculativeTokens > {_MAXIMUM}")
        + " + '] asks for more tokens than drafter.numSpeculativeTokens; lower numSpeculativeTokens in that range, or "
        "raise drafter.numSpeculativeTokens, which restarts the pods'",
        ".schedule",
    ),
    *support_rules(),
    Rule(
        f"!has({_NODES}) || {_NODES} == 1 || {_TARGET_SIZE} % {_NODES} == 0",
        "an engine over several nodes splits its model evenly: set engine.tensorParallelSize to a multiple of "
        "engine.nodes (the GPUs of all its nodes together)",
        field_path=".engine.tensorParallelSize",
    ),
    Rule(
        f"!has({_DRAFT_SIZE}) || {_DRAFT_SIZE} in [1, {_TARGET_SIZE}]",
        "must be 1 or the same as engine.tensorParallelSize (1 if that is not set)",
        field_path=".drafter.tensorParallelSize",
    ),
    Rule(
        f"!has({_DRAFT_SIZE}) || self.drafter.method != 'draft_model' || {_DRAFT_SIZE} == {_TARGET_SIZE}",
        "draft_model must be split like the target model: remove tensorParallelSize, or set it to "
        "engine.tensorParallelSize",
        field_path=".drafter.tensorParallelSize",
    ),
    Rule(
        "!has(self.model.tokenSecretRef) || !has(self.engine.env) || "
        "!self.engine.env.exists(e, e.name in ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN'])",
        "the token is given twice: by model.tokenSecretRef and by an environment variable; keep model.tokenSecretRef",
        field_path=".engine.env",
    ),
)
"""Rules on the spec (`self`)."""
