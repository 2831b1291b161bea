"""What a flood of requests may ask of the engine: counted in calls, never in seconds."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dsd_runtime import readers
from dsd_runtime.readers import Line, LineIsFullError, Shared


class Calls:
    """Numbered calls that end when the test says so; each returns what `state` was when it began."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.state = 0
        self.gates: list[asyncio.Event] = []

    async def __call__(self) -> int:
        """One call."""
        self.began.append(self.state)
        found, gate = self.state, asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        return found

    async def wait_for(self, number: int) -> None:
        """Until this many have begun."""
        async with asyncio.timeout(30):
            while len(self.gates) < number:  # noqa: ASYNC110 - a test polls
                await asyncio.sleep(0)


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_those_who_ask_at_once_share_one_call() -> None:
    calls = Calls()
    shared = Shared(calls)
    waiting = [asyncio.create_task(shared.read()) for _ in range(1000)]
    await calls.wait_for(1)
    calls.gates[0].set()
    assert await asyncio.gather(*waiting) == [0] * 1000
    assert len(calls.began) == 1


async def test_nobody_gets_what_a_call_brings_that_began_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """1000 readers come while a call runs and the state changes: all of them wait for one second call."""
    monkeypatch.setattr(readers, "HEAD_START_SECONDS", 600)
    calls = Calls()
    shared = Shared(calls)
    first = asyncio.create_task(shared.read())
    await calls.wait_for(1)
    calls.state = 1
    late = [asyncio.create_task(shared.read()) for _ in range(1000)]
    await settle()
    assert len(calls.began) == 1, "the second call waits for the first"
    calls.gates[0].set()
    await calls.wait_for(2)
    calls.gates[1].set()
    assert await first == 0
    assert await asyncio.gather(*late) == [1] * 1000
    assert len(calls.began) == 2


async def test_slow_call_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "HEAD_START_SECONDS", 0.01)
    calls = Calls()
    shared = Shared(calls)
    stuck = asyncio.create_task(shared.read())
    await calls.wait_for(1)
    second = asyncio.create_task(shared.read())
    await calls.wait_for(2)
    calls.gates[1].set()
    assert await second == 0
    assert not stuck.done()
    calls.gates[0].set()
    assert await stuck == 0


async def test_one_after_the_other_gets_a_call_each() -> None:
    calls = Calls()
    shared = Shared(calls)
    for number in range(3):
        calls.state = number
        reader = asyncio.create_task(shared.read())
        await calls.wait_for(number + 1)
        calls.gates[number].set()
        assert await reader == number


async def test_reader_that_goes_away_takes_nobody_along() -> None:
    calls = Calls()
    shared = Shared(calls)
    leaver, stayer = asyncio.create_task(shared.read()), asyncio.create_task(shared.read())
    await calls.wait_for(1)
    leaver.cancel()
    await settle()
    calls.gates[0].set()
    assert await stayer == 0
    assert leaver.cancelled()


async def test_error_reaches_every_reader_and_the_next_call_is_a_new_one() -> None:
    outcomes: list[Callable[[], int]] = [lambda: 1 // 0, lambda: 7]

    async def call() -> int:
        return outcomes.pop(0)()

    shared = Shared(call)
    errors = await asyncio.gather(*(shared.read() for _ in range(3)), return_exceptions=True)
    assert [type(error) for error in errors] == [ZeroDivisionError] * 3
    assert await shared.read() == 7


async def test_error_that_nobody_waits_for_is_no_noise() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    gate = asyncio.Event()

    async def call() -> int:
        await gate.wait()
        raise ValueError

    shared = Shared(call)
    reader = asyncio.create_task(shared.read())
    await settle()
    reader.cancel()
    gate.set()
    await settle()
    del shared
    assert reported == []


async def test_line_is_bounded_and_in_order() -> None:
    line, order, gate = Line(2), [], asyncio.Event()

    async def take(number: int) -> None:
        async with line.turn():
            order.append(number)
            await gate.wait()

    def start(number: int) -> Awaitable[None]:
        return asyncio.create_task(take(number))

    good = [start(1), start(2), start(3)]
    await settle()
    with pytest.raises(LineIsFullError):
        await take(4)
    gate.set()
    await asyncio.gather(*good)
    await take(5)
    assert order == [1, 2, 3, 5]


async def test_who_leaves_the_line_makes_room() -> None:
    line, gate = Line(1), asyncio.Event()

    async def take() -> None:
        async with line.turn():
            await gate.wait()

    holder = asyncio.create_task(take())
    await settle()
    leaver = asyncio.create_task(take())
    await settle()
    leaver.cancel()
    await settle()
    third = asyncio.create_task(take())
    await settle()
    assert not third.done()
    gate.set()
    await asyncio.gather(holder, third)
