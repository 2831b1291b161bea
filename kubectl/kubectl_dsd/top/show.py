"""How a look is shown: a table for people, plain data for programs. Pure but for rich."""

from datetime import UTC, datetime
from typing import Any, Final

from rich.table import Table

from kubectl_dsd.output import marked, plain
from kubectl_dsd.top.rates import Rates
from kubectl_dsd.top.samples import Look, PodSample

_HEADINGS: Final = (
    "POD", "K", "RUNNING", "WAITING", "BATCH", "ACCEPTED", "TOKENS/STEP", "PER REQUEST", "TOKENS/S", "KV CACHE",
    "SCHEDULE",
)  # fmt: skip
_HASH_LENGTH: Final = 8
_KINDS: Final = {"serving": "", "starting": "quiet", "ending": "quiet"}
NOTHING: Final = "-"


def table(look: Look, *, everywhere: bool = False) -> Table:
    """One row per pod, what is wrong with it below, and a row for all of them where there are several."""
    headings = ("NAMESPACE", *_HEADINGS) if everywhere else _HEADINGS
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    first = len(headings) - len(_HEADINGS) + 1
    for i, heading in enumerate(headings):
        made.add_column(heading, justify="right" if first <= i < len(headings) - 1 else "left", no_wrap=True)
    for pod in look.pods:
        cells = [*([pod.namespace] if everywhere else []), *_cells(pod)]
        made.add_row(*(marked(cell, _KINDS.get(pod.state, "doubtful")) for cell in cells))
    if len(look.pods) > 1:
        made.add_row(*([""] if everywhere else []), *_total(look))
    return made


def notes(look: Look) -> list[str]:
    """What is wrong with pods, one line each."""
    return [f"{pod.pod}: {plain(pod.note)}" for pod in look.pods if pod.note]


def _cells(pod: PodSample) -> list[str]:
    if pod.reading is None:
        return [pod.pod, *[NOTHING] * (len(_HEADINGS) - 2), pod.state]
    return [
        pod.pod,
        ",".join(map(str, dict.fromkeys(pod.tokens))) or NOTHING,
        _whole(pod.running),
        _whole(pod.waiting),
        *_rate_cells(pod.rates),
        share(pod.kv_cache),
        ", ".join(f"{s.hash[:_HASH_LENGTH]} ({s.source})" for s in pod.schedules) or NOTHING,
    ]


def _rate_cells(rates: Rates | None) -> list[str]:
    """BATCH to TOKENS/S."""
    if rates is None:
        return [NOTHING] * 5
    return [
        number(rates.batch_size, 1),
        share(rates.acceptance),
        number(rates.tokens_per_step, 1),
        number(rates.tokens_per_request, 2),
        number(rates.tokens_per_second, 0 if rates.tokens_per_second >= 100 else 1),
    ]


def _total(look: Look) -> list[str]:
    running = [pod.running for pod in look.pods if pod.running is not None]
    waiting = [pod.waiting for pod in look.pods if pod.waiting is not None]
    return ["all", "", _whole(sum(running)), _whole(sum(waiting)), *_rate_cells(look.rates()), "", ""]


def _whole(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def number(value: float | None, digits: int) -> str:
    """A number with so many digits, a dash for none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def share(value: float | None) -> str:
    """A share in percent, a dash for none."""
    return NOTHING if value is None else f"{value:.1%}"


def document(look: Look) -> dict[str, Any]:
    """As `-o json` shows it. Rates are null until there are two looks at the same engine process."""
    return {
        "time": datetime.fromtimestamp(look.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "pods": [_pod(pod) for pod in look.pods],
        "total": _rates(look.rates()),
    }


def _pod(pod: PodSample) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "deployment": pod.deployment,
        "pod": pod.pod,
        "state": pod.state,
        "note": pod.note or None,
        "numSpeculativeTokens": list(pod.tokens),
        "requestsRunning": pod.running,
        "requestsWaiting": pod.waiting,
        "kvCacheUsage": pod.kv_cache,
        "schedules": [{"revision": s.revision, "hash": s.hash, "source": s.source} for s in pod.schedules],
        "rates": _rates(pod.rates),
    }


def _rates(rates: Rates | None) -> dict[str, Any] | None:
    if rates is None:
        return None
    return {
        "seconds": rates.seconds,
        "tokensPerSecond": rates.tokens_per_second,
        "stepsPerSecond": rates.steps_per_second,
        "tokensPerStep": rates.tokens_per_step,
        "tokensPerRequestAndStep": rates.tokens_per_request,
        "batchSize": rates.batch_size,
        "acceptance": rates.acceptance,
    }
