"""The conversion itself, both ways.

What vLLM does silently is said aloud here: it lowers a K above the maximum (`build_dynamic_sd_schedule_lookup`), sorts
the table, and renames methods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_runtime import support
from dsd_runtime.convert.keys import TABLE_KEY, read_keys
from dsd_runtime.convert.methods import resolve_method
from dsd_runtime.convert.numbers import whole
from dsd_runtime.convert.report import ConvertError, Report
from dsd_runtime.convert.table import read_table
from dsd_runtime.parameters import combination_messages, switch
from dsd_runtime.schedule import MAX_SPECULATIVE_TOKENS, Problem, Ranges, Triple, from_triples, to_triples, validate

SUFFIX_TOKENS: Final = 24
"""num_speculative_tokens of method suffix where it is not given: vLLM's default of suffix_decoding_max_tree_depth."""

_OPEN_END: Final = 1024
"""End of the one range of a config without a table. Its value does not matter: what is above keeps the last K."""


@dataclass(frozen=True)
class Conversion:
    """A speculative config, taken apart: the schedule, what remains for vLLM, and what should be known about it."""

    ranges: Ranges
    speculative: dict[str, Any]
    """Without the table; ready for `--speculative-config`."""
    notes: tuple[Problem, ...]

    def for_vllm(self) -> dict[str, Any]:
        """The whole speculative config again, for a stock vLLM."""
        return self.speculative | {TABLE_KEY: to_triples(self.ranges)}


def from_vllm(config: Mapping[str, Any], max_num_seqs: int | None = None) -> Conversion:
    """Take a speculative config apart; raises ConvertError.

    `max_num_seqs` is the engine's, where it is known: it ends the one range of a config without a table, and ranges
    beyond it are noted.
    """
    report = Report()
    known = read_keys(config, report)
    table = known.pop(TABLE_KEY, None)
    method = resolve_method(known, report)
    maximum = _maximum(known, method, report)
    _check_lookup(known, report)
    _check_synthetic(known, maximum, report)
    rows = read_table(table, TABLE_KEY, report) if table is not None else []
    report.raise_problems()
    if table is None:
        rows = [(1, max_num_seqs or _OPEN_END, maximum)]
        report.note(TABLE_KEY, f"not given: one range with K={maximum} (batches above its end keep that K)")
    ranges = from_triples([_clamped(row, maximum, report) for row in rows])
    _check_method(method, known, ranges, report)
    report.raise_problems()
    _note_ranges(ranges, max_num_seqs, report)
    return Conversion(ranges, known, tuple(report.notes))


def to_vllm(ranges: Ranges, speculative: Mapping[str, Any]) -> Conversion:
    """Put a schedule and the rest of a speculative config together; raises ConvertError.

    The opposite of `from_vllm`, with one difference: a K above the maximum is an error, since nobody asked vLLM yet.
    """
    conversion = from_vllm({**speculative, TABLE_KEY: to_triples(ranges)}) if TABLE_KEY not in speculative else None
    if conversion is None:
        raise ConvertError(
            [Problem(TABLE_KEY, "the schedule is given twice, in the speculative config too; remove it")]
        )
    problems = validate(ranges, int(conversion.speculative["num_speculative_tokens"]))
    if problems:
        raise ConvertError(problems)
    return conversion


def _maximum(config: dict[str, Any], method: str | None, report: Report) -> int:
    """num_speculative_tokens, with `config` changed to hold it as a number."""
    key = "num_speculative_tokens"
    if config.get(key) is None and method == "suffix":
        report.note(key, f"not given: {SUFFIX_TOKENS}, vLLM's default for suffix")
        config[key] = SUFFIX_TOKENS
    value = config.get(key)
    number = whole(value)
    if value is None:
        report.problem(key, "must be given: the largest K, which vLLM needs at start")
    elif number is None:
        report.problem(key, f"must be a whole number, not {value!r}")
    elif number < 1:
        report.problem(
            key, f"must be greater than 0, not {number}; to switch off at a batch size give it K=0 in the schedule"
        )
    elif number > MAX_SPECULATIVE_TOKENS:
        report.problem(key, f"{number} is more than this project supports ({MAX_SPECULATIVE_TOKENS})")
    else:
        config[key] = number
        return number
    return 0


def _clamped(row: Triple, maximum: int, report: Report) -> Triple:
    start, end, k = row
    if k <= maximum:
        return row
    report.note(
        f"{TABLE_KEY} [{start}, {end}, {k}]",
        f"K={k} is above num_speculative_tokens, so vLLM runs {maximum} here without a word; written as {maximum}. To "
        f"run {k}, set num_speculative_tokens to {k}",
    )
    return start, end, maximum


def _check_lookup(config: dict[str, Any], report: Report) -> None:
    """The window of method ngram. Where only one end is given vLLM takes it for the other too, so none is filled in."""
    ends = {}
    for key in ("prompt_lookup_min", "prompt_lookup_max"):
        value = config.get(key)
        number = whole(value)
        if value is None:
            continue
        if number is None or number < 1:
            report.problem(key, f"must be a whole number from 1, not {value!r}")
        else:
            ends[key] = config[key] = number
    if len(ends) == 2 and ends["prompt_lookup_min"] > ends["prompt_lookup_max"]:
        report.problem("prompt_lookup_min", "must not be above prompt_lookup_max")


def _check_synthetic(config: Mapping[str, Any], maximum: int, report: Report) -> None:
    if config.get("rejection_sample_method") == "synthetic":
        report.note(
            "rejection_sample_method",
            "WARNING: synthetic is for benchmarks only: accepted tokens are made up, and so is the text",
        )
    rates = config.get("synthetic_acceptance_rates")
    if isinstance(rates, Sequence) and maximum and len(rates) != maximum:
        report.problem("synthetic_acceptance_rates", f"has {len(rates)} entries; vLLM wants one per token, {maximum}")


def _check_method(method: str | None, config: Mapping[str, Any], ranges: Ranges, report: Report) -> None:
    """What the method cannot do. The model runner is not known here: what only one of them cannot do is a note."""
    if method is None:
        return
    for message in combination_messages(config, method, "Auto"):
        report.problem("", message)
    refusals = {runner: _refusals(method, runner, config, ranges) for runner in ("V1", "V2")}
    for k in sorted(refusals["V1"].keys() & refusals["V2"].keys()):
        report.problem(f"K={k}", refusals["V1"][k])
    for runner, other in (("V1", "V2"), ("V2", "V1")):
        only_here = refusals[runner].keys() - refusals[other].keys()
        if only_here and not refusals[other]:
            reasons = dict.fromkeys(refusals[runner][k] for k in sorted(only_here))
            report.note("method", f"with model runner {runner}: {'; '.join(reasons)}")


def _refusals(method: str, runner: Any, config: Mapping[str, Any], ranges: Ranges) -> dict[int, str]:
    """The scheduled K's that this runner refuses, with the reasons."""
    verdict = support.judge(
        method,
        runner,
        int(config["num_speculative_tokens"]),
        parallel_drafting=switch(config, "parallel_drafting"),
        heterogeneous_vocab=switch(config, "use_heterogeneous_vocab"),
    )
    scheduled = {r.num_speculative_tokens for r in ranges}
    return {k: verdict.reasons[k] for k in scheduled - set(verdict.allowed)}


def _note_ranges(ranges: Ranges, max_num_seqs: int | None, report: Report) -> None:
    if all(r.num_speculative_tokens == 0 for r in ranges):
        report.note(
            TABLE_KEY, "never speculates, and the drafter stays loaded: leave speculation out to save its memory"
        )
    for r in ranges:
        if max_num_seqs is not None and r.start_batch_size > max_num_seqs:
            message = f"starts above max_num_seqs {max_num_seqs}, so it never applies"
            report.note(f"{TABLE_KEY} {list(r.triple())}", message)
