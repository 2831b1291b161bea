"""Which K this resource may schedule, and which the engine prepares at start. Judged from the spec, before a pod is."""

from dsd_operator.api import Spec
from dsd_runtime.parameters import switch
from dsd_runtime.support import Verdict, judge
from dsd_runtime.support import prepared_tokens as allowed_defaults


def verdict_of(spec: Spec) -> Verdict:
    """What the spec promises; vLLM may resolve something else, which the plugin then judges again."""
    drafter = spec.drafter
    return judge(
        drafter.method,
        spec.engine.model_runner,
        drafter.num_speculative_tokens,
        parallel_drafting=switch(drafter.parameters, "parallel_drafting"),
        heterogeneous_vocab=switch(drafter.parameters, "use_heterogeneous_vocab"),
    )


def prepared_tokens(spec: Spec) -> tuple[int, ...]:
    """The K values the engine prepares at start, ascending. Depends on the envelope only."""
    chosen = spec.drafter.prepared_tokens
    if chosen is None:
        return allowed_defaults(verdict_of(spec), spec.drafter.num_speculative_tokens)
    return tuple(sorted(set(chosen)))
