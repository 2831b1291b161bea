"""What one engine core holds: schedule state, config-file watcher, metrics, and the utilities that the routes call.

Made by the scheduler mixin (`scheduler`) when vLLM constructs its scheduler, hence before the first request. Everything
here takes and returns plain data, because utilities travel between processes.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from dsd_runtime import __version__, compat, config_file, resolved
from dsd_runtime.faults import Faults, utc_now
from dsd_runtime.history import History
from dsd_runtime.metrics import ScheduleMetrics, show_plugin
from dsd_runtime.outcome import StepOutcome
from dsd_runtime.protocol import (
    ConfigFile,
    EngineCoreState,
    EngineStatus,
    Envelope,
    ErrorState,
    SchedulePut,
    ScheduleState,
    Versions,
)
from dsd_runtime.schedule import Lookup, Ranges, ScheduleRange, from_triples
from dsd_runtime.state import Active, Answer, EngineState, Proposal, Result, Source
from dsd_runtime.step_metrics import StepMetrics
from dsd_runtime.throttle import Throttle

logger = logging.getLogger("vllm.dsd.engine")

SHOW_SECONDS: Final = 0.5
"""In a burst of changes, how often the one in use is logged and shown in /metrics: each time costs a line and a file
made anew, while the engine would step."""


class EngineRuntime:
    """The DSD side of one engine core."""

    def __init__(self, envelope: Envelope, reasons: Mapping[int, str], start: Ranges, labels: dict[str, str]) -> None:
        """`start` is in force until the config file (read here, if there is one) replaces it."""
        self.envelope = envelope
        self._engine = int(labels["engine"])
        self._steps = 0
        self._chosen = envelope.num_speculative_tokens
        self._latest: StepOutcome | None = None
        self._error: ErrorState | None = None
        self._step_metrics = StepMetrics(labels, envelope.max_num_seqs, envelope.num_speculative_tokens)
        self._schedule_metrics = ScheduleMetrics(labels)
        self._throttle = Throttle(SHOW_SECONDS)
        self._faults = Faults(labels)
        self._history = History()
        show_plugin(
            labels,
            version=__version__,
            vllm_version=compat.gate().vllm_version,
            method=envelope.method,
            runner=envelope.model_runner,
            mode="on",
        )
        self.state = EngineState(envelope, reasons, start, self._changed)
        self._file_has_revision = False
        self._watcher = self._watch()

    @classmethod
    def of(cls, config: Any) -> "EngineRuntime":
        """Make it from a resolved VllmConfig that `resolved.refusal` has nothing against."""
        verdict = resolved.verdict(config)
        envelope = resolved.as_started(config, resolved.envelope(config, verdict))
        return cls(envelope, verdict.reasons, start_ranges(config, envelope), resolved.identity(config))

    def _watch(self) -> config_file.Watcher | None:
        path = resolved.config_path()
        if path is None:
            return None
        watcher = config_file.Watcher(path, self._apply_file, self._report_file)
        watcher.poll()
        watcher.start()
        return watcher

    def choose(self, batch_size: int) -> int:
        """K for the step that is being scheduled."""
        self._chosen = self.state.current.policy.choose(batch_size, self._latest)
        return self._chosen

    def static_table(self) -> list[int]:
        """K of the schedule in use for each batch size from 0, which no step has: the form of vLLM's own lookup."""
        lookup = Lookup.of(self.state.current.ranges)
        return [lookup(max(size, 1)) for size in range(self.envelope.max_num_seqs + 1)]

    def observe(self, step: StepOutcome) -> None:
        """Count a finished step."""
        self._latest = step
        self._steps += 1
        self._step_metrics.observe(step)

    def flush(self) -> None:
        """Bring /metrics up to date: the engine falls idle or is paused."""
        self._step_metrics.flush()

    def close(self) -> None:
        """The plugin gives up: the config file is no longer followed, and nobody may read of a change in the log."""
        if self._watcher is not None:
            self._watcher.stop()
        self.flush()

    def status(self) -> dict[str, Any]:
        """This engine core's view, as a one-engine EngineStatus."""
        schedule = self.state.current.shown
        core = EngineCoreState(
            engine=self._engine, schedule=schedule, num_speculative_tokens=self._chosen, steps=self._steps
        )
        return EngineStatus(
            mode="on",
            versions=Versions(runtime=__version__, vllm=compat.gate().vllm_version),
            envelope=self.envelope,
            schedule=schedule,
            engines=(core,),
            last_error=self._error,
            faults=self._faults.now(),
        ).dump()

    def history(self) -> dict[str, Any]:
        """What this engine core has used since it started, as an EngineCoreHistory."""
        return self._history.tell(self._engine).dump()

    def check(self, body: str) -> dict[str, Any]:
        """What `put` would answer, without doing it."""
        return encode(self.state.check(proposal_of(body)))

    def put(self, body: str, change: str) -> dict[str, Any]:
        """Use the schedule of the PUT `change` from the next step on, or say why not; with the status after it."""
        return encode(self._accept(proposal_of(body, change))) | {"status": self.status()}

    def roll_back(self, change: str) -> bool:
        """Undo a PUT that another engine core refused.

        The file may have brought the same revision while the PUT was in force, and counts now.
        """
        undone = self.state.roll_back(change)
        # A file without a revision went over the PUT when it was seen; once more, it would go over an earlier PUT.
        if undone and self._file_has_revision and self._watcher is not None:
            self._watcher.again()
        return undone

    def _accept(self, proposal: Proposal) -> Answer:
        answer = self.state.accept(proposal)
        if answer.result is Result.INVALID and proposal.source == "file":
            return answer  # the watcher reports it, like every other reason why the file is not followed
        self._schedule_metrics.count_update(proposal.source, answer.result)
        if answer.result is Result.INVALID:
            self._set_error(proposal.source, answer.text())
        elif answer.result is Result.APPLIED:
            self._error = None
        return answer

    def _apply_file(self, config: ConfigFile) -> str | None:
        self._file_has_revision = config.revision is not None
        answer = self._accept(Proposal(config.ranges, config.revision, "file", smoothing=config.smoothing))
        return answer.text() if answer.result is Result.INVALID else None

    def _report_file(self, fault: str | None) -> None:
        self._faults.set("file", fault)
        if fault is not None:
            self._schedule_metrics.count_update("file", Result.INVALID)
            self._set_error("file", fault)
        elif (error := self._error) is not None and error.source == "file":
            self._error = None

    def _set_error(self, source: Source, message: str) -> None:
        self._error = ErrorState(source=source, message=message, time=utc_now())

    def _changed(self, active: Active) -> None:
        self._history.add(active.shown)
        self._throttle.call(lambda: self._show(active.shown))

    def _show(self, shown: ScheduleState) -> None:
        number = shown.revision.number if shown.revision else None
        smoothing = f", smoothing {shown.smoothing}" if shown.smoothing else ""
        triples = [r.triple() for r in shown.ranges]
        logger.info("schedule in use: %s%s (from %s, revision %s)", triples, smoothing, shown.source, number)
        self._schedule_metrics.show(shown)


def proposal_of(body: str, change: str | None = None) -> Proposal:
    """The proposal in a validated PUT body."""
    put = SchedulePut.model_validate_json(body)
    return Proposal(put.ranges, put.revision, "http", change, put.smoothing)


def encode(answer: Answer) -> dict[str, Any]:
    """An answer as plain data for the way to the front end."""
    return {
        "result": str(answer.result),
        "problems": [{"field": p.field, "message": p.message} for p in answer.problems],
    }


def static_ranges(config: Any) -> Ranges | None:
    """The config file's schedule for an engine that runs without the plugin's changes.

    None, with which vLLM drafts the maximum always, where the file cannot be used or its schedule is not possible here.
    """
    path = resolved.config_path()
    if path is None:
        return None
    try:
        ranges = config_file.read(path).ranges
    except config_file.ConfigFileError as error:
        logger.error("no static table: %s; vLLM drafts the maximum always", error)
        return None
    allowed = resolved.verdict(config).allowed
    if all(r.num_speculative_tokens in allowed for r in ranges):
        return ranges
    method = config.speculative_config.method
    logger.error("no static table: method %s cannot run the schedule of the config file", method)
    return None


def static_lookup(config: Any) -> list[int] | None:
    """`static_ranges` in the form of vLLM's own lookup."""
    ranges = static_ranges(config)
    if ranges is None:
        return None
    lookup = Lookup.of(ranges)
    return [lookup(max(size, 1)) for size in range(config.scheduler_config.max_num_seqs + 1)]


def start_ranges(config: Any, envelope: Envelope) -> Ranges:
    """What is in force until the config file is read: the user's own start-up table, else the largest possible K.

    The superset table that `plugin` puts in is no schedule: it exists so that vLLM prepares every K.
    """
    table = config.speculative_config.num_speculative_tokens_per_batch_size
    if table and not resolved.has_superset(config):
        # As vLLM reads it: in any order, and clamped to the maximum.
        return from_triples((start, end, min(k, envelope.num_speculative_tokens)) for start, end, k in sorted(table))
    largest = max(envelope.allowed_tokens)
    return (ScheduleRange(start_batch_size=1, end_batch_size=envelope.max_num_seqs, num_speculative_tokens=largest),)
