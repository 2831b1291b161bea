"""Why a container ended, read from its state: the memory limit, the start-up time, a known cause, or its last words.

Part of `pods`. The runtime says in the first line of the engine's termination message which of `dsd_runtime.causes` it
was; where it could not (the image is older, or vLLM ended in its command line), the words themselves are judged.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from dsd_operator.render.pod_template import ENGINE
from dsd_operator.render.probes import patience
from dsd_operator.status.readiness import lost_since
from dsd_operator.status.reasons import Reason
from dsd_runtime.causes import known_cause, marked

_LAST_LINES: Final = 5
_LINE_LENGTH: Final = 300

_KILLED: Final = frozenset({0, 137, 143})
"""Exit codes of an engine that was told to end: it ended well, did not in time, or let the signal end it."""

_KILL_SECONDS: Final = 60
"""Beyond its grace period: a startup probe that fails for the last time has waited for its answer, and the kubelet is
not punctual."""

_DEFAULT_GRACE_SECONDS: Final = 30

Object = Mapping[str, Any]


def crash(pod: Object, container: Object, ended: Object, looping: bool) -> tuple[Reason, str] | None:
    """Reason and message for a container of `pod` that `ended` (its `terminated` state, the last one if it runs again);
    None where it has not ended, or well. `looping`: the kubelet waits before it starts it again."""
    if not ended and not looping:
        return None
    named, words = marked(str(ended.get("message", "")))
    last = last_lines(words)
    if ended.get("reason") == "OOMKilled":
        return Reason.OOM_KILLED, _sentence("killed for exceeding its memory limit", last)
    budget = startup_seconds(pod, container)
    if budget is not None and _took_too_long(pod, ended, budget):
        text = f"was not healthy within {budget} s (spec.startup.timeoutSeconds), and was ended"
        return Reason.STARTUP_TIMEOUT, _sentence(text, last)
    if ended.get("exitCode") == 0 and not looping:
        return None
    known = _reason(named, words) if container.get("name") == ENGINE else None
    text = f"exits with code {ended.get('exitCode', 'unknown')}"
    return known or Reason.CRASH_LOOP_BACK_OFF, _sentence(text, last)


def _reason(named: str | None, words: str) -> Reason | None:
    """The runtime's word, unless it is a newer one than we know."""
    if named in set(Reason):
        return Reason(str(named))
    cause = known_cause(words)
    return Reason(cause.reason) if cause is not None else None


def startup_seconds(pod: Object, container: Object) -> int | None:
    """How long the container's startup probe lets it take; None where it has none."""
    specs = pod.get("spec", {}).get("containers") or ()
    probes = (c.get("startupProbe") for c in specs if c.get("name") == container.get("name"))
    probe = next((found for found in probes if found), None)
    return None if probe is None else patience(probe)


def _took_too_long(pod: Object, ended: Object, budget: int) -> bool:
    """Whether it was killed when its startup probe gave up. The kubelet says so in an Event alone; what the state shows
    is that it was told to end, as long after its start as that takes. The time to drain is part of that and may be
    hours, in which an engine that did start can end, too: a pod that was ready is none that took too long."""
    if ended.get("exitCode") not in _KILLED or lost_since(pod, ended):
        return False
    grace = int(pod.get("spec", {}).get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS))
    try:
        started, finished = (datetime.fromisoformat(str(ended[key])) for key in ("startedAt", "finishedAt"))
    except (KeyError, ValueError):
        return False
    return budget - 1 <= (finished - started).total_seconds() <= budget + grace + _KILL_SECONDS


def _sentence(what: str, details: str) -> str:
    return f"{what}: {details}" if details else what


def last_lines(text: str) -> str:
    """The end of a log, where a crash says what it is: the last lines, blank ones left out, joined by ` | `."""
    lines = [line.strip() for line in marked(text)[1].splitlines() if line.strip()]
    return " | ".join(line[:_LINE_LENGTH] for line in lines[-_LAST_LINES:])
