"""A deployment's status, Events and health against `dsd_operator.status.states`: one check for every state's test."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from dsd_operator.status.reasons import ConditionType
from dsd_operator.status.states import STATES, State, state_of
from tools.cluster.gobuild import binary, ensure
from tools.cluster.versions import HEALTH
from tools.testbed.kube import Json

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "gitops.md"


def named(name: str) -> State:
    """The state of this name; KeyError where there is none."""
    return {state.name: state for state in STATES}[name]


def shows(resource: Json, state: State) -> bool:
    """Whether the status is that of the state, about the current spec, messages included."""
    status = resource.get("status") or {}
    generation = resource["metadata"]["generation"]
    conditions = status.get("conditions") or ()
    current = [c["observedGeneration"] for c in conditions] == [generation] * len(ConditionType)
    return (
        current
        and status["observedGeneration"] == generation
        and state_of(status) is state
        and not wrong(status, state)
    )


def wrong(status: Mapping[str, Any], state: State) -> list[str]:
    """The messages that do not say what they should."""
    wanted = {kind.value: standing.says for kind, standing in state.standings.items()}
    return [
        f"{c['type']}: {c['message']!r} does not match {wanted[c['type']]!r}"
        for c in status["conditions"]
        if not re.search(wanted[c["type"]], c["message"], re.DOTALL)
    ]


def untold(events: Iterable[Json], status: Mapping[str, Any]) -> set[str]:
    """The reasons of conditions that no Event has told."""
    return {c["reason"] for c in status["conditions"]} - {event["reason"] for event in events}


def check_events(events: Iterable[Json], status: Mapping[str, Any], state: State, *earlier: State) -> None:
    """Each condition's news is an Event with its words, a Warning where the state says so, and only there. There is no
    other Warning, but those of the states that it was in `earlier`."""
    told = {(event["type"], event["reason"], event["message"]) for event in events}
    for condition in status["conditions"]:
        words = (condition["reason"], condition["message"])
        wanted = "Warning" if condition["reason"] in state.warns else "Normal"
        assert {kind for kind, *rest in told if tuple(rest) == words} <= {wanted}, (condition, told)
    warned = {reason for kind, reason, _ in told if kind == "Warning"}
    expected = {reason.value for known in (state, *earlier) for reason in known.warns}
    assert set(state.warns) <= warned <= expected, told


def check_explained(explained: Json, state: State) -> None:
    """`kubectl dsd explain` (as JSON) names the state, and first what is wrong in it, with the way out."""
    first = explained["findings"][0] if explained["findings"] else {"weight": "info"}
    assert explained["state"] == state.name
    assert first["weight"] == _weight(state), explained["findings"]
    if state.warns:
        assert first["reason"] in state.warns, explained["findings"]
        assert first["fix"], explained["findings"]


def _weight(state: State) -> str:
    """Of the worst finding."""
    if not state.warns:
        return "info"
    return "warning" if state.ready.status == "True" else "error"


def health(resource: Json) -> dict[str, str]:
    """What Flux (kstatus) and Argo CD (the script of the how-to) make of it."""
    ensure([HEALTH])
    script = re.search(r"```lua\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert script is not None
    file = binary(HEALTH).parent / f"{hash(script[1])}.lua"
    file.write_text(script[1])
    try:
        done = subprocess.run(
            [binary(HEALTH), file], input=json.dumps(resource), text=True, capture_output=True, check=False
        )
    finally:
        file.unlink()
    assert done.returncode == 0, done.stderr
    return {by: verdict["status"] for by, verdict in json.loads(done.stdout).items()}


def expected_health(state: State) -> dict[str, str]:
    """The rule of the how-to, by the table."""
    if state.ready.status == "True":
        return {"argo": "Healthy", "flux": "Current"}
    return {"argo": "Progressing" if state.progressing.status == "True" else "Degraded", "flux": "InProgress"}
