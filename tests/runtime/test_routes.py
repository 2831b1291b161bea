"""The routes without an engine: strict parsing, and all or nothing across engine cores."""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime import plugin, resolved, routes
from dsd_runtime.protocol import MAX_BODY_BYTES, EngineStatus, SchedulePut
from dsd_runtime.routes import Engines, RequestProblemError, merge, parse_put, read_body
from dsd_runtime.state import EngineState, Proposal
from tests.runtime.examples import envelope, ranges, revision

RANGE = '{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 2}'
REVISION = '{"owner": "o", "number": 5}'


def refusal(content: str | bytes) -> RequestProblemError:
    """The problem of a body that must not parse."""
    with pytest.raises(RequestProblemError) as error:
        parse_put(content.encode() if isinstance(content, str) else content)
    return error.value


def test_good_body() -> None:
    put = parse_put(f'{{"revision": {REVISION}, "ranges": [{RANGE}]}}'.encode())
    assert put.ranges[0].triple() == (1, 8, 2)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '"x"',
        "NaN",
        "{}",
        '{"revision": NaN}',
        f'{{"revision": {REVISION}, "ranges": [{RANGE}], "revision": {REVISION}}}',
        f'{{"revision": {REVISION}, "ranges": [{{"startBatchSize": 1, "startBatchSize": 2}}]}}',
        f'{{"revision": {REVISION}, "ranges": [{RANGE}], "more": 1}}',
        f'{{"revision": {REVISION}}}',
        f'{{"revision": 5, "ranges": [{RANGE}]}}',
        f'{{"revision": {REVISION}, "ranges": {RANGE}}}',
        f'{{"revision": {REVISION}, "ranges": ["1-8:2"]}}',
        f'{{"revision": {REVISION}, "ranges": [{RANGE.replace("2}", "2.0}")}]}}',
        f'{{"revision": {REVISION}, "ranges": [{RANGE.replace("2}", "true}")}]}}',
        f'{{"revision": {REVISION}, "ranges": [{RANGE.replace(": 1,", ": null,")}]}}',
        f'{{"revision": {REVISION}, "ranges": [{RANGE.replace(": 1,", ": 1e0,")}]}}',
        f'{{"revision": {REVISION}, "ranges": [{RANGE.replace("2}", "Infinity}")}]}}',
        "[" * 50_000,
        '{"a":' * 10_000,
        '{"revision": {"owner": "o", "number": ' + "9" * 5000 + "}}",
        b"\xff\xfe",
        '{"revision": ' + REVISION + ', "ranges": [' + RANGE + "]} trailing",
    ],
)
def test_malformed_bodies_are_400(content: str | bytes) -> None:
    assert refusal(content).document.status == 400


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (f'{{"revision": {REVISION}, "ranges": []}}', "ranges"),
        (f'{{"revision": {REVISION}, "ranges": [{",".join([RANGE] * 33)}]}}', "ranges"),
        (f'{{"revision": {REVISION}, "ranges": [{RANGE.replace("2}", "-1}")}]}}', "ranges[0].numSpeculativeTokens"),
        (f'{{"revision": {REVISION}, "ranges": [{RANGE.replace("2}", "129}")}]}}', "ranges[0].numSpeculativeTokens"),
        (f'{{"revision": {REVISION}, "ranges": [{RANGE.replace(": 1,", ": 0,")}]}}', "ranges[0].startBatchSize"),
        (f'{{"revision": {{"owner": "o", "number": 0}}, "ranges": [{RANGE}]}}', "revision.number"),
    ],
)
def test_values_out_of_range_are_422_with_the_field(content: str, field: str) -> None:
    document = refusal(content).document
    assert (document.status, [e.field for e in document.errors]) == (422, [field])


class Request:
    """A request whose body comes in pieces; counts what was read."""

    def __init__(self, pieces: list[bytes], length: str | None = None) -> None:
        self.headers = {} if length is None else {"content-length": length}
        self._pieces = pieces
        self.read = 0

    async def stream(self) -> Any:
        """The pieces."""
        for piece in self._pieces:
            self.read += len(piece)
            yield piece


@pytest.mark.parametrize("length", [None, str(10**9), "0", "-5", "x", "٣"])
async def test_huge_body_is_not_read(length: str | None) -> None:
    request = Request([b"x" * 1024] * 10_000, length)
    with pytest.raises(RequestProblemError) as error:
        await read_body(request)
    assert error.value.document.status == 413
    assert request.read <= MAX_BODY_BYTES + 1024


async def test_body_at_the_limit_is_read() -> None:
    assert len(await read_body(Request([b"x"] * MAX_BODY_BYTES))) == MAX_BODY_BYTES


class Core:
    """An engine core with a real state, behind a client of the shape that vLLM's has."""

    def __init__(self, index: int, maximum: int = 4) -> None:
        self.index = index
        self.calls: list[str] = []
        self.before: Callable[[str], Any] | None = None
        self.state = EngineState(envelope(maximum), {}, ranges((1, 16, 1)), lambda _: None)

    def status(self) -> dict[str, Any]:
        """A status with one engine core."""
        shown = self.state.current.shown
        core = {"engine": self.index, "schedule": shown, "num_speculative_tokens": 1, "steps": 0}
        versions = {"runtime": "1", "vllm": "2"}
        status = {"mode": "on", "versions": versions, "envelope": self.state.envelope, "schedule": shown}
        return EngineStatus.model_validate(status | {"engines": (core,)}).dump()

    async def call(self, method: str, *arguments: str) -> Any:
        """Run one utility."""
        self.calls.append(method)
        if self.before is not None:
            await self.before(method)
        if method == "dsd_status":
            return self.status()
        if method == "dsd_roll_back":
            return self.state.roll_back(arguments[0])
        put = SchedulePut.model_validate_json(arguments[0])
        proposal = Proposal(put.ranges, put.revision, "http", arguments[1] if len(arguments) > 1 else None)
        answer = self.state.check(proposal) if method == "dsd_check" else self.state.accept(proposal)
        problems = [{"field": p.field, "message": p.message} for p in answer.problems]
        return {"result": str(answer.result), "problems": problems, "status": self.status()}


def client(*cores: Core) -> Any:
    """An engine client for these engine cores."""

    async def call_all(method: str, *arguments: str) -> list[Any]:
        return list(await asyncio.gather(*(core.call(method, *arguments) for core in cores)))

    return SimpleNamespace(engine_core=SimpleNamespace(core_engines=list(cores), call_utility_all_async=call_all))


def put_of(number: int, k: int) -> SchedulePut:
    """A PUT body."""
    return SchedulePut(revision=revision(number), ranges=ranges((1, 16, k)))


def in_use(*cores: Core) -> list[int]:
    """K in use on each engine core."""
    return [core.state.current.policy.choose(1, None) for core in cores]


async def refused(engines: Engines, put: SchedulePut) -> int:
    """The status of a PUT that must fail."""
    with pytest.raises(RequestProblemError) as error:
        await engines.put(put)
    return error.value.document.status


async def test_every_engine_core_takes_it() -> None:
    cores = Core(1), Core(0)
    status = await Engines(client(*cores)).put(put_of(5, 3))
    assert in_use(*cores) == [3, 3]
    assert [core["engine"] for core in status["engines"]] == [0, 1]
    assert status["schedule"]["revision"]["number"] == 5


async def test_none_takes_what_one_refuses() -> None:
    cores = Core(0), Core(1, maximum=2)
    assert await refused(Engines(client(*cores)), put_of(5, 3)) == 422
    assert in_use(*cores) == [1, 1]
    assert "dsd_put" not in cores[0].calls, "it must not be in use anywhere, not even for a moment"


async def test_none_keeps_what_one_refuses_at_the_last_moment() -> None:
    """Between check and put, a newer file reaches one engine core."""
    cores = Core(0), Core(1)

    async def newer_file(method: str) -> None:
        if method == "dsd_put":
            cores[1].state.accept(Proposal(ranges((1, 16, 0)), revision(9), "file"))

    cores[1].before = newer_file
    assert await refused(Engines(client(*cores)), put_of(5, 3)) == 409
    assert in_use(*cores) == [1, 0]


async def test_slow_engine_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "ENGINE_TIMEOUT_SECONDS", 0.05)
    cores = Core(0), Core(1)
    stuck = asyncio.Event()

    async def hang(method: str) -> None:
        if method == "dsd_put":
            await stuck.wait()

    cores[1].before = hang
    engines = Engines(client(*cores))
    assert await refused(engines, put_of(5, 3)) == 503
    assert in_use(*cores) == [1, 1], "the one that answered went back"
    cores[1].before = None
    await engines.put(put_of(5, 3))
    assert in_use(*cores) == [3, 3], "the same revision may be tried again"


async def test_engine_that_fails_or_is_not_there() -> None:
    async def fail(_: str) -> None:
        raise RuntimeError("EngineDeadError")

    core = Core(0)
    core.before = fail
    assert await refused(Engines(client(core)), put_of(5, 3)) == 503
    with pytest.raises(RequestProblemError) as error:
        await Engines(None).status()
    assert error.value.document.status == 503


async def test_puts_do_not_overtake_each_other() -> None:
    core = Core(0)

    async def slow(_: str) -> None:
        await asyncio.sleep(0)

    core.before = slow
    engines = Engines(client(core))
    outcomes = await asyncio.gather(*(engines.put(put_of(n, n % 5)) for n in (7, 3, 9)), return_exceptions=True)
    assert [isinstance(outcome, RequestProblemError) for outcome in outcomes] == [False, True, False]
    assert core.state.current.revision == revision(9)


async def test_one_engine_core_needs_one_call() -> None:
    core = Core(0)
    await Engines(client(core)).put(put_of(5, 3))
    assert core.calls == ["dsd_put"]


def test_merged_status_tells_a_fault_that_all_engine_cores_have_once() -> None:
    def core(engine: int, *faults: tuple[str, str]) -> dict[str, Any]:
        told = [{"source": "file", "message": message, "since": since} for message, since in faults]
        return {"engines": [{"engine": engine}], "faults": told}

    merged = merge([core(0, ("gone", "2026-01-01T00:00:02Z")), core(1, ("full", "2026-01-01T00:00:03Z"),
                    ("gone", "2026-01-01T00:00:01Z"))])  # fmt: skip
    assert [(fault["message"], fault["since"][-3:]) for fault in merged["faults"]] == [("gone", "01Z"), ("full", "03Z")]
    assert merge([core(0), core(1)])["faults"] == []


def test_merged_status_shows_the_oldest_schedule() -> None:
    cores = Core(0), Core(1)
    cores[0].state.accept(Proposal(ranges((1, 16, 2)), revision(5), "file"))
    assert "revision" not in merge([core.status() for core in cores])["schedule"]
    cores[1].state.accept(Proposal(ranges((1, 16, 3)), revision(6), "http"))
    assert merge([core.status() for core in cores])["schedule"]["revision"]["number"] == 5


def test_problem_documents_are_problem_json() -> None:
    answer = routes.problem_response(RequestProblemError(401, "no token"))
    assert answer.media_type == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert json.loads(answer.body)["status"] == 401


def test_status_where_hot_changes_are_off() -> None:
    found = EngineStatus.model_validate_json(json.dumps(plugin.off_status("pipeline parallelism")))
    assert (found.mode, found.schedule) == ("off", None)
    assert found.last_error is not None
    assert "pipeline" in found.last_error.message


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[9, 16, 1], [1, 8, 3]], [(1, 8, 3), (9, 16, 1)]),
        (None, None),
        ([["1", "8", "3"]], None),
        ({"1-8": 3}, None),
    ],
)
def test_status_where_hot_changes_are_off_tells_the_table(
    table: Any, expected: list[tuple[int, int, int]] | None
) -> None:
    config = SimpleNamespace(speculative_config=SimpleNamespace(num_speculative_tokens_per_batch_size=table))
    found = EngineStatus.model_validate_json(json.dumps(plugin.off_status("x", config))).schedule
    assert (found and [r.triple() for r in found.ranges]) == expected
    setattr(config.speculative_config, resolved.SUPERSET_MARK, True)
    assert "schedule" not in plugin.off_status("x", config), "the superset is no schedule"
