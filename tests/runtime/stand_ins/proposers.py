"""A proposer of a user's own, as vLLM's method custom_class takes it."""

from typing import Any


class Repeat:
    """Drafts the last token again, as many times as the engine's maximum says: vLLM passes it no K."""

    def __init__(self, vllm_config: Any) -> None:
        self._maximum: int = vllm_config.speculative_config.num_speculative_tokens

    def propose(self, sampled_token_ids: list[list[int]], *_: Any, **__: Any) -> list[list[int]]:
        """One draft for each request that sampled a token."""
        return [ids[-1:] * self._maximum for ids in sampled_token_ids]

    def load_model(self, *_: Any, **__: Any) -> None:
        """There is none."""
