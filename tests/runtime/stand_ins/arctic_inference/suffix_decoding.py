"""The interface of `arctic_inference.suffix_decoding` that `vllm.v1.spec_decode.suffix_decoding` uses."""

from collections.abc import KeysView, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Draft:
    """What vLLM reads of a draft."""

    token_ids: list[int]


class SuffixDecodingCache:
    """Prompt and response of each request; a draft is what followed the latest earlier occurrence of the last token."""

    def __init__(self, max_tree_depth: int, max_cached_requests: int) -> None:
        self.max_tree_depth = max_tree_depth
        self.max_cached_requests = max_cached_requests
        self._tokens: dict[str, list[int]] = {}

    @property
    def active_requests(self) -> KeysView[str]:
        """Requests that were started and not stopped."""
        return self._tokens.keys()

    @property
    def cached_requests(self) -> tuple[str, ...]:
        """Responses that are kept for other requests: none."""
        return ()

    def start_request(self, req_id: str, prompt_token_ids: Sequence[int]) -> None:
        """Begin with a prompt."""
        self._tokens[req_id] = list(prompt_token_ids)

    def stop_request(self, req_id: str) -> None:
        """Forget a request."""
        del self._tokens[req_id]

    def add_active_response(self, req_id: str, token_ids: Sequence[int]) -> None:
        """Tokens that were sampled."""
        self._tokens[req_id] += token_ids

    def speculate(self, req_id: str, context: Sequence[int], max_spec_tokens: int, **_: Any) -> Draft:
        """A draft of at most `max_spec_tokens`."""
        tokens, last = self._tokens[req_id], int(context[-1])
        places = [i for i, token in enumerate(tokens[:-1]) if token == last]
        return Draft([int(t) for t in tokens[places[-1] + 1 :][:max_spec_tokens]] if places else [])
