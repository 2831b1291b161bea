"""What an engine core has used since it started: kept, forgotten, told for all engine cores at once."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime import compat
from dsd_runtime.history import MAX_KEPT, History
from dsd_runtime.protocol import EngineHistory, ScheduleState
from dsd_runtime.routes import Engines
from dsd_runtime.state import EngineState, Proposal
from tests.runtime.examples import envelope, ranges, revision


def schedule(number: int) -> ScheduleState:
    """A schedule that a PUT with this number brought."""
    return ScheduleState(revision=revision(number), hash=f"{number:016x}", source="http", ranges=ranges((1, 16, 1)))


def test_changes_are_told_in_their_order() -> None:
    history = History()
    for number in (1, 2, 3):
        history.add(schedule(number))
    told = history.tell(7)
    assert (told.engine, told.forgotten) == (7, 0)
    assert [change.schedule.hash for change in told.changes] == [schedule(n).hash for n in (1, 2, 3)]
    assert told.started <= told.changes[0].time <= told.changes[-1].time


def test_old_changes_are_counted_not_kept() -> None:
    history = History()
    for number in range(1, MAX_KEPT + 6):
        history.add(schedule(number))
    told = history.tell(0)
    assert (told.forgotten, len(told.changes)) == (5, MAX_KEPT)
    assert told.changes[0].schedule.hash == schedule(6).hash


def test_a_put_that_is_undone_leaves_both_changes() -> None:
    """It was in use, if only for a moment."""
    history = History()
    state = EngineState(envelope(), {}, ranges((1, 16, 4)), lambda active: history.add(active.shown))
    state.accept(Proposal(ranges((1, 16, 2)), revision(5), "http", "change"))
    state.roll_back("change")
    assert [change.schedule.ranges[0].num_speculative_tokens for change in history.tell(0).changes] == [4, 2, 4]


def client(*answers: Any) -> Any:
    """An engine client whose engine cores answer so."""

    async def call_all(method: str) -> list[Any]:
        assert method == "dsd_history"
        await asyncio.sleep(0)
        return list(answers)

    return SimpleNamespace(engine_core=SimpleNamespace(core_engines=list(answers), call_utility_all_async=call_all))


async def test_the_route_tells_of_every_engine_core() -> None:
    told = [History().tell(engine).dump() for engine in (1, 0)]
    answer = await Engines(client(*told)).history()
    assert [core["engine"] for core in answer["engines"]] == [0, 1]
    assert EngineHistory.model_validate_json(json.dumps(answer)).mode == "on"


async def test_with_the_plugin_off_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await Engines(client(None)).history() == {"mode": "off", "engines": []}
    monkeypatch.setattr(compat, "gate", lambda: SimpleNamespace(mode="off", reason="an unknown vLLM"))
    assert await Engines(client()).history() == {"mode": "off", "engines": []}
