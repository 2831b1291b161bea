"""One profile from the first change of the schedule to the last: whatever happens in between, the old one comes back.

The checks before it are in `command`, the sweep itself in `sweep`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dsd_runtime.schedule import Ranges
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import Failure
from kubectl_dsd.output import note
from kubectl_dsd.profile import model
from kubectl_dsd.profile.engines import Engines, reach
from kubectl_dsd.profile.plan import Plan
from kubectl_dsd.profile.progress import Progress
from kubectl_dsd.profile.prompts import Prompt
from kubectl_dsd.profile.report import gain_text
from kubectl_dsd.profile.results import Results, Subject
from kubectl_dsd.profile.schedules import RESTORE_SECONDS, Schedules
from kubectl_dsd.profile.signals import Interrupted, Signals
from kubectl_dsd.profile.streams import Connection, Settings
from kubectl_dsd.profile.sweep import Sweep


@dataclass(frozen=True)
class Wishes:
    """What the command line says about the requests and about the end."""

    prompts: Sequence[Prompt]
    max_tokens: int
    temperature: float
    url: str | None
    api_key: str | None
    apply: bool
    force: bool


@dataclass
class Outcome:
    """How it ended. `results` is there once a round was measured to its end, whatever came then."""

    results: Results | None = None
    failure: Failure | None = None
    signal: int | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """What to measure, as the checks found it."""

    resource: Json
    pods: Sequence[Json]
    statuses: Sequence[Json]
    subject: Subject
    plan: Plan
    wishes: Wishes


def measure(cluster: Cluster, job: Job) -> Outcome:
    """Run the profile; raises only what goes wrong before the first change of the schedule."""
    subject, plan, wishes = job.subject, job.plan, job.wishes
    outcome = Outcome()
    with reach(cluster, subject.namespace, job.pods, job.statuses, wishes.url, wishes.api_key) as engines:
        settings, prompts = _requests(engines, wishes)
        warn_busy(engines)
        with Progress(len(plan.cells()), plan.seconds()) as progress:
            schedules = Schedules(cluster, job.resource, progress.tell)

            def use(ranges: Ranges) -> None:
                engines.check(cluster.pods(schedules.use(ranges)))

            sweep = Sweep(use, engines, prompts, settings, subject.largest)
            with restoring(schedules, outcome, progress.tell):
                sweep.run(plan, progress)
                outcome.results = Results(subject, plan, tuple(sweep.samples))
                if wishes.apply:
                    outcome.notes.append(apply(outcome.results, schedules, force=wishes.force))
        _keep_what_is_whole(outcome, subject, plan, sweep)
    return outcome


def _requests(engines: Engines, wishes: Wishes) -> tuple[Settings, tuple[Prompt, ...]]:
    """The model's name, and the prompts as it takes them."""
    connection = Connection(engines.addresses[0], wishes.api_key)
    settings = model.served(connection, Settings("", wishes.max_tokens, wishes.temperature, wishes.api_key))
    try:
        return settings, model.usable(wishes.prompts, connection, settings)
    finally:
        connection.close()


def warn_busy(engines: Engines) -> None:
    """Say so where requests run that are not ours: they change the batch size, and every number with it."""
    if busy := engines.busy():
        note(f"{busy:.0f} requests of other clients run or wait now: the numbers will be those of the mixed load")


@contextmanager
def restoring(
    schedules: Schedules, outcome: Outcome, tell: Callable[[str], None], seconds: float = RESTORE_SECONDS
) -> Iterator[None]:
    """Run the block, then put the schedule back: after failures, signals, and defects of ours too."""

    undo = f"Should this process be killed, the schedule comes back with\n  {schedules.undo_command()}"
    tell(undo)
    with Signals(lambda: tell(f"The schedule is being put back. {undo}")) as signals:
        try:
            try:
                yield
            finally:
                # A signal may still come here and raise; the clauses below run after that too, and then none comes.
                signals.shield()
        except Interrupted:
            tell("Interrupted: putting the schedule back")
        except Failure as failure:
            outcome.failure = failure
        finally:
            restored = schedules.restore(seconds)
            outcome.signal = signals.number
            if not restored.done:
                outcome.failure = Failure(restored.text)
            elif restored.text:
                outcome.notes.append(restored.text)


def apply(results: Results, schedules: Schedules, *, force: bool) -> str:
    """Set the best schedule where it is worth it; says what was done."""
    if results.present_is_best and not force:
        return f"not applied: {gain_text(results)}"
    if not force and (results.gain is None or not results.gain.above(1.0)):
        return f"not applied: {gain_text(results)}. --force sets it all the same"
    schedules.keep(results.best.ranges)
    return f"applied: {gain_text(results)}. The one before comes back with\n  {schedules.undo_command()}"


def _keep_what_is_whole(outcome: Outcome, subject: Subject, plan: Plan, sweep: Sweep) -> None:
    """Of an interrupted profile, the rounds that were measured to their end."""
    if outcome.results is None:
        partial = Results(subject, plan, tuple(sweep.samples))
        outcome.results = partial if partial.rounds else None
        done = f"{partial.rounds} of {plan.rounds} rounds were measured to their end"
        outcome.notes.append(done + ("" if partial.rounds else ", so there is no result"))
