"""The engine half of a pod without an engine: the runtime's own rules for schedules, and no vLLM behind them.

Which schedule replaces which, and what the answers look like, is the runtime's own code. `fake_engines` serves many of
them; the integration tests put one behind each pod.
"""

from typing import Final

from dsd_runtime.history import History
from dsd_runtime.protocol import (
    ConfigFile,
    EngineCoreState,
    EngineStatus,
    Envelope,
    ProblemDocument,
    SchedulePut,
    Versions,
)
from dsd_runtime.schedule import ScheduleRange
from dsd_runtime.state import EngineState, Proposal, Result

PORT: Final = 8000

ENVELOPE: Final = Envelope(
    method="ngram",
    model_runner="V1",
    num_speculative_tokens=3,
    max_num_seqs=256,
    prepared_tokens=(0, 1, 2, 3),
    allowed_tokens=(0, 1, 2, 3),
)
_START: Final = (ScheduleRange(start_batch_size=1, end_batch_size=256, num_speculative_tokens=3),)
_VERSIONS: Final = Versions(runtime="0.1.0", vllm="0.32.0")


class FakeEngine:
    """One engine, as if it ran with `ENVELOPE`."""

    def __init__(self) -> None:
        self.history = History()
        self.state = EngineState(ENVELOPE, {}, _START, lambda active: self.history.add(active.shown))

    def read(self, config: ConfigFile | None) -> None:
        """Do what the runtime does when the kubelet has refreshed the mounted file."""
        if config is not None:
            self.state.accept(Proposal(config.ranges, config.revision, "file", smoothing=config.smoothing))

    def put(self, body: bytes) -> ProblemDocument | None:
        """Take the body of a PUT; None: it is in use."""
        put = SchedulePut.model_validate_json(body)
        answer = self.state.accept(Proposal(put.ranges, put.revision, "http", smoothing=put.smoothing))
        if answer.result in (Result.APPLIED, Result.UNCHANGED):
            return None
        return problem(409 if answer.result is Result.STALE else 422, answer.text())

    def status(self) -> EngineStatus:
        """The answer to GET, and to a PUT that was taken."""
        schedule = self.state.current.shown
        core = EngineCoreState(engine=0, schedule=schedule, num_speculative_tokens=3, steps=0)
        return EngineStatus(mode="on", versions=_VERSIONS, envelope=ENVELOPE, schedule=schedule, engines=(core,))

    def triples(self) -> list[tuple[int, int, int]]:
        """The schedule in use."""
        return [r.triple() for r in self.state.current.ranges]

    def number(self) -> int | None:
        """The revision in use."""
        revision = self.state.current.revision
        return revision.number if revision else None


def problem(status: int, detail: str) -> ProblemDocument:
    """A refusal."""
    return ProblemDocument(type="urn:dsd:problem:test", title="Refused", status=status, detail=detail)
