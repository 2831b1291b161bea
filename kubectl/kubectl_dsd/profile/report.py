"""What a profile shows people: the tables, why each K was chosen, the plot, the schedule, what is odd.

Pure but for rich; `results` has the numbers.
"""

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from kubectl_dsd.output import to_yaml
from kubectl_dsd.profile.choice import percent
from kubectl_dsd.profile.intervals import Interval, interval
from kubectl_dsd.profile.plan import Plan, duration_text, used_by
from kubectl_dsd.profile.plot import draw
from kubectl_dsd.profile.results import Results, Subject, k_list, mean_of, ranges_text
from kubectl_dsd.profile.window import Sample

BEST = "*"


def plan_lines(subject: Subject, plan: Plan, prompts: str) -> list[str]:
    """What will be done."""
    cells = plan.cells()
    pods = f"{len(subject.pods)} pod{'' if len(subject.pods) == 1 else 's'}"
    cores = "" if subject.cores == len(subject.pods) else f" with {subject.cores} engine cores"
    return [
        f"deployment    {subject.namespace}/{subject.name}, {subject.method}, {pods}{cores}",
        f"K             {k_list(plan.ks)}",
        f"concurrency   {k_list(plan.concurrencies)} per engine core",
        f"prompts       {prompts}",
        f"windows       {len(cells)} of {plan.duration:g} s: {plan.rounds} rounds, K changing in each",
        f"takes about   {duration_text(plan.seconds())}",
        f"schedule now  {ranges_text(subject.present.ranges)} (put back at the end)",
    ]


def parts(results: Results) -> list[Table | str]:
    """All of it, in order."""
    found: list[Table | str] = [
        "Tokens per second of an engine core: median of the rounds, 95 % interval (Student's t); * is the best K",
        _table(results, _throughput),
        "Tokens per request and step / milliseconds of a decode step / share of drafts accepted",
        _table(results, _explanation),
        "\n".join(_verdict_lines(results)),
    ]
    plot = draw(results.throughput)
    return [*found, *([plot] if plot else []), *_remark_lines(results), "\n".join(_schedule_lines(results))]


def _table(results: Results, cell: Callable[[Results, int, int], str]) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    made.add_column("CONCURRENCY", justify="right")
    for k in results.plan.ks:
        made.add_column(f"K={k}", justify="right")
    for verdict in results.verdicts:
        c = verdict.concurrency
        cells = [Text(cell(results, c, k), "bold" if k == verdict.chosen else "") for k in results.plan.ks]
        made.add_row(str(c), *cells)
    return made


def _throughput(results: Results, concurrency: int, k: int) -> str:
    chosen = next(v.chosen for v in results.verdicts if v.concurrency == concurrency)
    return interval_text(interval(results.throughput[concurrency][k])) + (BEST if k == chosen else " ")


def interval_text(found: Interval) -> str:
    """`229 (221-238)`, with a digit more below 10."""
    digits = 0 if found.middle >= 100 else 1
    if found.low is None or found.high is None:
        return f"{found.middle:.{digits}f}"
    return f"{found.middle:.{digits}f} ({found.low:.{digits}f}-{found.high:.{digits}f})"


def _explanation(results: Results, concurrency: int, k: int) -> str:
    found = results.of(concurrency, k)
    return " / ".join(
        (
            _number(found, lambda s: s.rates.tokens_per_request, "{:.2f}"),
            _number(found, lambda s: s.step_milliseconds, "{:.1f}"),
            _number(found, lambda s: s.rates.acceptance, "{:.0%}"),
        )
    )


def _number(samples: Sequence[Sample], value: Callable[[Sample], float | None], form: str) -> str:
    found = mean_of(map(value, samples))
    return "-" if found is None else form.format(found)


def _verdict_lines(results: Results) -> list[str]:
    return ["Why:", *(f"  {v.concurrency:>4}  {v.why()}" for v in results.verdicts)]


def _schedule_lines(results: Results) -> list[str]:
    head = f"# {'certain' if results.certain else 'not certain at every concurrency'}; {results.rounds} rounds"
    top = results.plan.concurrencies[-1]
    lines = [head, f"# above {top} nothing was measured: the K of {top} goes on"]
    if top >= results.subject.largest:
        lines.pop()
    if results.subject.verify_only:
        lines.append("# this method drafts the maximum whatever K is: a smaller K saves verification only")
    lines.append(f"# {gain_text(results)}")
    return [*lines, to_yaml({"schedule": results.best.data()["ranges"]}).rstrip()]


def gain_text(results: Results) -> str:
    """How the best schedule compares with the one in force."""
    if results.present_is_best:
        return "the schedule in force says the same already"
    if missing := sorted(used_by(results.subject.present.ranges) - set(results.plan.ks)):
        return f"how it compares with the schedule in force is not known: K={k_list(missing)} was not measured"
    if results.gain is None:
        return "how it compares with the schedule in force is not known: that takes three rounds"
    found = results.gain
    if found.low is None or found.high is None:
        return f"against the schedule in force: {percent(found.middle)}"
    text = f"against the schedule in force: {percent(found.middle)} ({percent(found.low)} to {percent(found.high)})"
    return text + ("" if found.above(1.0) else ": no gain beyond the interval")


def _remark_lines(results: Results) -> list[str]:
    engines, clients = results.tokens()
    counted = f"In all windows the engines emitted {engines:.0f} tokens, and clients got {clients}."
    found = [f"  {n} of {len(results.samples)} windows: {remark.text}" for remark, n in results.remarks()]
    return [counted, *(["\n".join(["Odd:", *found])] if found else [])]
