"""What every `dsd_` series of the steps must be, from what vLLM scheduled, answered and handed out.

Written from design and docs/reference/metrics.md alone: it shares no code with the recorder and `step_metrics`. Its
input are the records of `tests.runtime.hand_driven`.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

Samples = dict[tuple[str, str], float]
"""(sample, labels) -> value."""


def emitted(tokens: list[int], had: int, limit: int, stops: list[int]) -> int:
    """How many of the tokens reach the client: up to a stop token, and no more than the request may have."""
    for count, token in enumerate(tokens, 1):
        if token in stops or had + count >= limit:
            return count
    return len(tokens)


class Oracle:
    """Goes along with the steps; `expected` is what /metrics must show."""

    def __init__(self, max_num_seqs: int) -> None:
        self.expected: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._bounds = [2**i for i in range(12) if 2**i < max_num_seqs] + [max_num_seqs]
        self._before: int | None = None
        self._end: float | None = None
        self.seen: Counter[str] = Counter()

    def step(self, record: Mapping[str, Any]) -> None:
        """Add one step."""
        if record["paused"]:
            self._end = None
        if record["scheduled"]:
            self._count(record)
        self._end = record["end"] if record["busy"] else None

    def _count(self, record: Mapping[str, Any]) -> None:
        batch, chosen = len(record["scheduled"]), record["chosen"]
        decoding = [
            n for n, done in record["computed"].items() if done == record["known"][n] - 1 and record["outputs"][n]
        ]
        verified = (self._before or 0) if decoding else 0
        bucket = min(bound for bound in self._bounds if batch <= bound)
        labels = f"concurrency={bucket},k={verified}"
        self.expected["dsd_steps_total", labels] += 1
        self._tokens(record, labels)
        if self._end is not None and len(decoding) == batch and chosen == verified:
            self._price(record["end"] - self._end, labels, verified)
        self.expected["dsd_step_batch_size_sum", ""] += batch
        self.expected["dsd_step_batch_size_count", ""] += 1
        self.expected["dsd_num_speculative_tokens", ""] = chosen
        self.expected["dsd_num_speculative_tokens_changes_total", ""] += self._before not in (None, chosen)
        self.seen["K=0 steps"] += verified == 0 and bool(decoding)
        self.seen["prefill steps"] += not decoding
        self.seen["resumed"] += len(record["resumed"])
        self.seen["aborted in flight"] += len(set(record["scheduled"]) - set(record["sampled"]))
        self._before = chosen

    def _price(self, seconds: float, labels: str, verified: int) -> None:
        self.expected["dsd_step_seconds_total", labels] += seconds
        self.expected["dsd_step_duration_seconds_sum", f"k={verified}"] += seconds
        self.expected["dsd_step_duration_seconds_count", f"k={verified}"] += 1
        self.seen["priced steps"] += 1

    def _tokens(self, record: Mapping[str, Any], labels: str) -> None:
        for name, tokens in record["sampled"].items():
            had, limit, stops = (record[what][name] for what in ("outputs", "limits", "stops"))
            given = emitted(tokens, had, limit, stops)
            assert record["given"].get(name, 0) == given, "vLLM hands out what the oracle says"
            self.expected["dsd_emitted_tokens_total", labels] += given
            self.seen["cut by a limit"] += given < len(tokens) and had + given == limit
            self.seen["cut by a stop"] += given < len(tokens) and had + given < limit
            if tokens and (drafted := record["drafts"].get(name, 0)):
                self._drafts(labels, drafted, len(tokens) - 1)

    def _drafts(self, labels: str, drafted: int, accepted: int) -> None:
        for what, count in (("draft", drafted), ("accepted", accepted)):
            self.expected[f"dsd_{what}_tokens_total", labels] += count
            for position in range(count):
                self.expected[f"dsd_{what}_tokens_per_pos_total", f"position={position}"] += 1

    def samples(self) -> Samples:
        """What must be on the page, zeros left out."""
        return {key: value for key, value in self.expected.items() if value}


def shown(series: Mapping[str, Mapping[str, float]]) -> Samples:
    """The samples of the steps on the page, zeros and the buckets of histograms left out."""
    return {
        (name, labels): value
        for name, found in series.items()
        if name.startswith(("dsd_step", "dsd_emitted", "dsd_draft", "dsd_accepted", "dsd_num"))
        and not name.endswith("_bucket")
        for labels, value in found.items()
        if value
    }
