"""Every `dsd_*` series of an engine: name, type, labels, and exactly when it counts. Pure.

`metrics` and `step_metrics` make them, docs/reference/metrics.md is generated from here, and a test compares both with
a real /metrics page. Never a `vllm:` name: vLLM removes every collector that carries one.
"""

from dataclasses import dataclass
from typing import Final, Literal

LABELS: Final = ("model_name", "engine")
"""On every series, with the values that vLLM's own have."""

BY_K: Final = ("k", "concurrency")
OTHER: Final = "other"
"""`k` and `concurrency` of what found no room for a series of its own."""


@dataclass(frozen=True)
class Family:
    """One metric. `name` lacks the `_total` of a counter; `counts` says in Markdown when and what it counts."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    extra: tuple[str, ...]
    text: str
    counts: str

    @property
    def sample(self) -> str:
        """The name on the page; a histogram's samples add their endings to it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def _counter(name: str, extra: tuple[str, ...], text: str, counts: str) -> Family:
    return Family(name, "counter", extra, text, counts)


STEPS: Final = _counter(
    "dsd_steps", BY_K, "Engine steps by verified K and batch size",
    "1 for each step that had requests, when its output has been processed; K=0 steps and steps that only compute "
    "prompts too. A step without requests counts nowhere.",
)  # fmt: skip
STEP_SECONDS: Final = _counter(
    "dsd_step_seconds", BY_K, "Seconds of the priced steps",
    "the step's wall time, where the step is *priced* (below)",
)  # fmt: skip
EMITTED: Final = _counter(
    "dsd_emitted_tokens", BY_K, "Tokens handed to the front end",
    "tokens that leave the engine core, after `max_tokens` and stop tokens have cut them",
)  # fmt: skip
DRAFTED: Final = _counter(
    "dsd_draft_tokens", BY_K, "Draft tokens that were verified",
    "draft tokens of the requests that the step verified, without those that a grammar had ruled out",
)  # fmt: skip
ACCEPTED: Final = _counter(
    "dsd_accepted_tokens", BY_K, "Draft tokens that were accepted",
    "accepted ones among them; also those that `max_tokens` or a stop token cut off again",
)  # fmt: skip
DRAFTED_PER_POS: Final = _counter(
    "dsd_draft_tokens_per_pos", ("position",), "Verified draft tokens by position in the draft",
    "the tokens of `dsd_draft_tokens_total`, by position from 0; positions from 16 on share `16+`",
)  # fmt: skip
ACCEPTED_PER_POS: Final = _counter(
    "dsd_accepted_tokens_per_pos", ("position",), "Accepted draft tokens by position in the draft",
    "the tokens of `dsd_accepted_tokens_total`, likewise",
)  # fmt: skip
CHANGES: Final = _counter(
    "dsd_num_speculative_tokens_changes", (), "Steps whose chosen K differs from the step before",
    "1 for each step for which another K was chosen than for the step with requests before it; the first step is none",
)  # fmt: skip
STEP_DURATION: Final = Family(
    "dsd_step_duration_seconds", "histogram", ("k",), "Wall time of the priced steps",
    "the same steps and times as `dsd_step_seconds_total`",
)  # fmt: skip
BATCH_SIZE: Final = Family(
    "dsd_step_batch_size", "histogram", (), "Requests scheduled in a step",
    "the same steps as `dsd_steps_total`",
)  # fmt: skip
IN_USE: Final = Family(
    "dsd_num_speculative_tokens", "gauge", (), "K chosen for the latest counted step",
    "K chosen for the latest step in `dsd_steps_total`",
)  # fmt: skip
SCHEDULE_INFO: Final = Family(
    "dsd_schedule_revision_info", "gauge", ("revision", "hash", "source"), "The schedule in use",
    "1 for the schedule in use; the series of the one before goes with it. Of changes that come close together the "
    "first is shown at once and the last within half a second",
)  # fmt: skip
SCHEDULE_RANGE: Final = Family(
    "dsd_schedule_num_speculative_tokens", "gauge", ("start", "end"), "K of one range of the schedule in use",
    "K of each range of the schedule in use; the series of the one before go with it",
)  # fmt: skip
UPDATES: Final = _counter(
    "dsd_schedule_updates", ("source", "result"), "Proposed schedules",
    "1 for each proposed schedule; `result` is applied, unchanged, stale or invalid",
)  # fmt: skip
PLUGIN: Final = Family(
    "dsd_plugin_info", "gauge", ("version", "vllm_version", "method", "runner", "mode"), "The DSD runtime plugin",
    "1; `mode=\"off\"`: the schedule changes only with a restart, be it from the start or after a failure of ours",
)  # fmt: skip
FAULT: Final = Family(
    "dsd_fault", "gauge", ("source",), "Whether something is wrong while the engine serves",
    "1 while it is, else 0: `source=\"file\"` the config file is not followed, `source=\"metrics\"` series are missing",
)  # fmt: skip

ROW: Final = (STEPS, STEP_SECONDS, EMITTED, DRAFTED, ACCEPTED)
"""What is counted by K and concurrency."""

STEP_FAMILIES: Final = (
    *ROW, DRAFTED_PER_POS, ACCEPTED_PER_POS, CHANGES, STEP_DURATION,
    BATCH_SIZE, IN_USE,
)  # fmt: skip
SCHEDULE_FAMILIES: Final = (SCHEDULE_INFO, SCHEDULE_RANGE, UPDATES, PLUGIN, FAULT)
FAMILIES: Final = (*STEP_FAMILIES, *SCHEDULE_FAMILIES)
