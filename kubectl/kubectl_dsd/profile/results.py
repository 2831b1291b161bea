"""All that a profile found out: samples by cell, verdicts, the best schedule, its gain. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any, Final

from dsd_runtime.schedule import Ranges
from kubectl_dsd.profile.choice import Samples, Verdict, best_schedule, gain, same, verdicts
from kubectl_dsd.profile.intervals import Interval, interval
from kubectl_dsd.profile.plan import Plan
from kubectl_dsd.profile.window import Remark, Sample
from kubectl_dsd.wanted import Schedule

BEST_SCHEDULE: Final = "bestSchedule"
"""The key of the document that `kubectl dsd schedule set -f` takes."""


@dataclass(frozen=True)
class Subject:
    """What was measured."""

    namespace: str
    name: str
    method: str
    pods: tuple[str, ...]
    cores: int
    largest: int
    """Upper end of the last range of a schedule: what the engines can run at once, or what the present one says."""
    present: Schedule
    verify_only: bool = False


@dataclass(frozen=True)
class Results:
    """The samples of all rounds that were measured to their end; an interrupted round is left out."""

    subject: Subject
    plan: Plan
    all_samples: tuple[Sample, ...]

    @cached_property
    def rounds(self) -> int:
        """Complete rounds."""
        cells = len(self.plan.concurrencies) * len(self.plan.ks)
        counted = Counter(sample.cell.round for sample in self.all_samples)
        return sum(1 for number in range(self.plan.rounds) if counted[number] == cells)

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """Those of the complete rounds."""
        return tuple(sample for sample in self.all_samples if sample.cell.round < self.rounds)

    @cached_property
    def throughput(self) -> Samples:
        """Concurrency -> K -> tokens per second of an engine core in each round."""
        return {
            c: {k: [s.tokens_per_second for s in self.of(c, k)] for k in self.plan.ks} for c in self.plan.concurrencies
        }

    def of(self, concurrency: int, k: int) -> list[Sample]:
        """The samples of a cell, by round."""
        found = [s for s in self.samples if (s.cell.concurrency, s.cell.k) == (concurrency, k)]
        return sorted(found, key=lambda s: s.cell.round)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """One per concurrency."""
        return verdicts(self.throughput)

    @cached_property
    def best(self) -> Schedule:
        """The schedule of the verdicts, with the smoothing that is in force."""
        return Schedule(best_schedule(self.verdicts, self.subject.largest), self.subject.present.smoothing)

    @cached_property
    def gain(self) -> Interval | None:
        """Over the schedule that was in force; None where it cannot be told."""
        return gain(self.throughput, self.subject.present.ranges)

    @property
    def present_is_best(self) -> bool:
        """Whether the schedule in force says the same at every concurrency that was measured."""
        return same(self.best.ranges, self.subject.present.ranges, self.throughput)

    @property
    def certain(self) -> bool:
        """Whether no concurrency is too noisy."""
        return all(v.certainty != "uncertain" for v in self.verdicts)

    def tokens(self) -> tuple[float, int]:
        """(tokens that the engines counted, tokens that clients got), in all windows."""
        return sum(s.engine_tokens for s in self.samples), sum(s.client_tokens for s in self.samples)

    def remarks(self) -> list[tuple[Remark, int]]:
        """One remark of each kind, with the number of windows that have it."""
        found = [remark for sample in self.samples for remark in sample.remarks]
        first = {remark.kind: remark for remark in reversed(found)}
        counted = Counter(remark.kind for remark in found)
        return [(remark, counted[kind]) for kind, remark in sorted(first.items())]


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def document(results: Results) -> dict[str, Any]:
    """Everything, as `-o json` shows it."""
    subject, plan = results.subject, results.plan
    return {
        "namespace": subject.namespace,
        "name": subject.name,
        "method": subject.method,
        "pods": list(subject.pods),
        "engineCores": subject.cores,
        "plan": {
            "concurrencies": list(plan.concurrencies),
            "numSpeculativeTokens": list(plan.ks),
            "rounds": plan.rounds,
            "durationSeconds": plan.duration,
        },
        "roundsMeasured": results.rounds,
        "interval": "95 %, Student's t on the logarithms of the rounds; ratios are paired by round",
        "cells": [_cell(results, c, k) for c in plan.concurrencies for k in plan.ks],
        "verdicts": [_verdict(v) for v in results.verdicts],
        "presentSchedule": subject.present.data()["ranges"],
        BEST_SCHEDULE: results.best.data()["ranges"],
        "presentIsBest": results.present_is_best,
        "certain": results.certain,
        "gainOverPresent": None if results.gain is None else bounds(results.gain),
        "remarks": [{"kind": r.kind, "text": r.text, "windows": n} for r, n in results.remarks()],
        "samples": [sample_data(sample) for sample in results.all_samples],
    }


def plan_document(subject: Subject, plan: Plan) -> dict[str, Any]:
    """What would be done, for a program."""
    return {
        "namespace": subject.namespace,
        "name": subject.name,
        "pods": list(subject.pods),
        "engineCores": subject.cores,
        "concurrencies": list(plan.concurrencies),
        "numSpeculativeTokens": list(plan.ks),
        "rounds": plan.rounds,
        "durationSeconds": plan.duration,
        "estimatedSeconds": plan.seconds(),
    }


def bounds(found: Interval) -> dict[str, float | None]:
    """An interval for a program."""
    return {"median": found.middle, "low": found.low, "high": found.high}


def _cell(results: Results, concurrency: int, k: int) -> dict[str, Any]:
    found = results.of(concurrency, k)
    return {
        "concurrency": concurrency,
        "numSpeculativeTokens": k,
        "tokensPerSecond": bounds(interval([s.tokens_per_second for s in found])),
        "acceptance": mean_of(s.rates.acceptance for s in found),
        "tokensPerRequestAndStep": mean_of(s.rates.tokens_per_request for s in found),
        "stepMilliseconds": mean_of(s.step_milliseconds for s in found),
    }


def _verdict(found: Verdict) -> dict[str, Any]:
    return {
        "concurrency": found.concurrency,
        "numSpeculativeTokens": found.chosen,
        "fastest": found.fastest,
        "certainty": found.certainty,
        "why": found.why(),
        "ratiosToFastest": {str(k): bounds(ratio) for k, ratio in found.ratios.items()},
    }


def sample_data(sample: Sample) -> dict[str, Any]:
    """One window for a program."""
    rates = sample.rates
    return {
        "round": sample.cell.round,
        "concurrency": sample.cell.concurrency,
        "numSpeculativeTokens": sample.cell.k,
        "seconds": sample.seconds,
        "tokensPerSecond": sample.tokens_per_second,
        "engineTokens": sample.engine_tokens,
        "clientTokens": sample.client_tokens,
        "shareAtK": sample.at_k,
        "batchSize": rates.batch_size,
        "acceptance": rates.acceptance,
        "tokensPerRequestAndStep": rates.tokens_per_request,
        "stepMilliseconds": sample.step_milliseconds,
        "remarks": [remark.text for remark in sample.remarks],
    }


def k_list(ks: Sequence[int]) -> str:
    """`0, 1, 3`."""
    return ", ".join(map(str, ks))


def ranges_text(ranges: Ranges) -> str:
    """A schedule on one line."""
    return ", ".join(f"{r.start_batch_size} to {r.end_batch_size}: K={r.num_speculative_tokens}" for r in ranges)
