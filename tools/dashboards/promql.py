"""The questions of the dashboards in PromQL: selectors by the dashboards' variables, and guarded ratios.

Used by the modules of the three dashboards. Each ratio is absent, and not NaN or infinite, where nothing was counted.
Sums are taken over pods before anything is divided, so that a rollout and any number of replicas change no ratio.
"""

from typing import Final

RECENT: Final = "$__rate_interval"
WHOLE: Final = "$__range"
"""The dashboard's whole time range: for tables of what each K has earned so far."""

_SCOPE: Final = ('job=~"$job"', 'instance=~"$instance"')
_RESOURCE: Final = ('dsd_namespace=~"$namespace"', 'dsd_name=~"$deployment"')
_NAMED: Final = ('k!="other"', 'concurrency!="other"')


def engine(metric: str, *more: str) -> str:
    """Series of the engines that the variables choose: ours or vLLM's. `more` are further matchers."""
    return _select(metric, *_SCOPE, *_RESOURCE, 'model_name=~"$model_name"', *more)


def resource(metric: str, *more: str) -> str:
    """The operator's series about a DSDDeployment."""
    return _select(metric, *_SCOPE, *_RESOURCE, *more)


def operator(metric: str, *more: str) -> str:
    """The operator's series about itself."""
    return _select(metric, *_SCOPE, *more)


def _select(metric: str, *matchers: str) -> str:
    return f"{metric}{{{', '.join(matchers)}}}"


def rate(series: str, *by: str, window: str = RECENT) -> str:
    """Sum of the rates of counters, by these labels."""
    return f"{_sum(by)}(rate({series}[{window}]))"


def total(series: str, *by: str, how: str = "sum") -> str:
    """Sum (or `how`) of gauges, by these labels."""
    return f"{how}{_by(by)}({series})"


def _sum(by: tuple[str, ...]) -> str:
    return f"sum{_by(by)}"


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(labels)}) " if labels else ""


def ratio(above: str, below: str, *, one: bool = False) -> str:
    """`above / below`, absent where `below` is 0. `one`: `below` is one value for all of `above`."""
    match = " on () group_left ()" if one else ""
    return f"{above} /{match} ({below} > 0)"


def quantile(q: float, histogram: str, *by: str, window: str = RECENT) -> str:
    """A quantile of a histogram (`histogram`: a selector of its buckets); NaN without observations."""
    buckets = rate(histogram, *by, "le", window=window)
    return f"histogram_quantile({q:g}, {buckets})"


def zero_or(expr: str, counted: str) -> str:
    """`expr`, and 0 while nothing of it has happened yet though there is `counted`: a counter begins with its event."""
    return f"({expr} or 0 * {counted})"


def mean(name: str, *by: str) -> str:
    """The mean of an engine's histogram."""
    return ratio(rate(engine(f"{name}_sum"), *by), rate(engine(f"{name}_count"), *by))


def acceptance(*by: str) -> str:
    """Share of the draft tokens that was accepted."""
    return ratio(rate(engine("dsd_accepted_tokens_total"), *by), rate(engine("dsd_draft_tokens_total"), *by))


def rejected_per_token(*by: str) -> str:
    """Draft tokens that were verified in vain for each token that clients got: the cost of speculation."""
    drafted, accepted, emitted = (rate(engine(f"dsd_{n}_tokens_total"), *by) for n in ("draft", "accepted", "emitted"))
    return ratio(f"({drafted} - {accepted})", emitted)


def _priced_share(k: str, window: str) -> str:
    """Share of the steps whose time is known (docs/reference/metrics.md: priced steps), by K."""
    counted = rate(engine("dsd_step_duration_seconds_count", k), "k", window=window)
    return ratio(counted, rate(engine("dsd_steps_total", k), "k", window=window))


def tokens_per_second(k: str = _NAMED[0], window: str = WHOLE) -> str:
    """Tokens that one engine emits in a second of its steps, by K and concurrency; `k` is a matcher.

    The time is known of priced steps only, the tokens of all steps; so the time is scaled by the share of priced steps.
    """
    matchers = (k, _NAMED[1])
    emitted = rate(engine("dsd_emitted_tokens_total", *matchers), "k", "concurrency", window=window)
    seconds = rate(engine("dsd_step_seconds_total", *matchers), "k", "concurrency", window=window)
    return f"{ratio(emitted, seconds)} * on (k) group_left () ({_priced_share(k, window)})"


def _without_speculation() -> str:
    """Tokens per second at K=0 by concurrency, over the whole range."""
    at_zero = tokens_per_second('k="0"')
    return f"sum by (concurrency) ({at_zero})"


def gain_by_cell() -> str:
    """How much faster than K=0 each K is, at the same concurrency: 0.3 is 30% more tokens per second."""
    speculating = tokens_per_second('k!~"0|other"')
    return f"{speculating} / on (concurrency) group_left () ({_without_speculation()}) - 1"


def gain(*by: str, window: str = RECENT) -> str:
    """How much faster the speculating steps were than K=0 would have been, at the same concurrency; by "k" or in all.

    Time that K=0 takes for the same tokens (its speed is that of the whole range) over the time that was taken. Only
    concurrencies at which K=0 has run count.
    """
    matchers = ('k!~"0|other"', _NAMED[1])
    emitted = rate(engine("dsd_emitted_tokens_total", *matchers), "k", "concurrency", window=window)
    seconds = rate(engine("dsd_step_seconds_total", *matchers), "k", "concurrency", window=window)
    speed = _without_speculation()
    saved = f"({emitted} and {seconds} > 0) / on (concurrency) group_left () ({speed})"
    share = _priced_share(matchers[0], window)
    taken = f"(({seconds} > 0) / on (k) group_left () ({share})) and on (concurrency) ({speed})"
    return f"{_sum(by)}({saved}) / ({_sum(by)}({taken}) > 0) - 1"


def schedule() -> str:
    """K of each range of the schedule in force, as a line: one point at each range's first and last batch size."""
    ranges = total(engine("dsd_schedule_num_speculative_tokens"), "start", "end", how="max")
    points = (f'label_replace({ranges}, "batch", "$1", "{edge}", "(.+)")' for edge in ("start", "end"))
    first, last = (f"max by (batch, {edge}) ({point})" for edge, point in zip(("start", "end"), points, strict=True))
    return f"{first} or {last}"


def new_schedule() -> str:
    """A schedule that is in use now while one step before only others were: a change, and not a start."""
    info = engine("dsd_schedule_revision_info")
    now, before = total(info, "hash", how="count"), total(f"{info} offset $__interval", "hash", how="count")
    some = total(f"{info} offset $__interval", how="count")
    return f"({now} unless {before}) and on () {some}"
