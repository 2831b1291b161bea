"""Faults of vLLM on CPUs that end an engine with speculative decoding, or spoil its outputs, mended in place.

They do not come from the schedule, but it makes them frequent: a schedule may ask for no drafts at all, and one request
with top_k then ends the engine. Called by `plugin` in every process. A GPU runs other code (Triton kernels), which has
none of them, and is left alone.
"""

import functools
from typing import Any


def apply() -> None:
    """Set all guards that this platform needs."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        guard_top_k()
        guard_sampling_parameters()


def guard_top_k() -> None:
    """Let a step without drafts sample with top_k.

    The rejection sampler applies the sampling parameters to the logits of the drafts, of which there are none where K
    is 0 or a prompt is computed. `apply_top_k_only` of vLLM 0.32 (`v1/sample/ops/topk_topp_sampler.py`) then asks for
    the maximum of nothing and raises; the Triton kernel returns early for no rows, and so does this.
    """
    from vllm.v1.sample.ops import topk_topp_sampler

    original = topk_topp_sampler.apply_top_k_only

    @functools.wraps(original)
    def apply_top_k_only(logits: Any, k: Any) -> Any:
        return original(logits, k) if logits.shape[0] else logits

    topk_topp_sampler.apply_top_k_only = apply_top_k_only


def guard_sampling_parameters() -> None:
    """Give every draft the temperature, top_k and top_p of its request.

    vLLM 0.32 has no Triton on a CPU; what stands in for the kernel (`utils/cpu_triton_utils.py`, `_expand_kernel_impl`)
    fills a converted copy and returns nothing, so all three are uninitialised memory: at best the drafts are judged by
    a wrong temperature, at worst top_k is above the vocabulary and the engine ends.
    """
    from vllm.v1.sample import rejection_sampler

    rejection_sampler.expand_batch_to_tokens = expand_batch_to_tokens


def expand_batch_to_tokens(
    x: Any, cu_num_tokens: Any, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> Any:
    """vLLM's function of that name: the value of each request once for each of its tokens, with `replace_from`
    replaced. `cu_num_tokens` counts up over the requests."""
    import torch

    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
    values = torch.where(x == replace_from, torch.full_like(x, replace_to), x)
    return torch.repeat_interleave(values, counts.to(torch.int64), output_size=num_tokens)
