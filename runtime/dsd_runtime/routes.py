"""The endpoint plugin: `GET /dsd/v1/status`, `GET /dsd/v1/history`, `PUT /dsd/v1/schedule`, and the readiness probe.

Runs in the API server, reaches the engine cores only through vLLM's engine client (utilities set by `plugin`). All or
nothing: several engine cores must all agree before one takes a schedule, and it is taken back if one refuses after all.
"""

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import AsyncIterator, Sequence
from operator import itemgetter
from typing import Any, Final

from pydantic import ValidationError

from dsd_runtime import compat, draining, open_streams
from dsd_runtime.access import Access
from dsd_runtime.auth import AuthError
from dsd_runtime.explain import field_errors
from dsd_runtime.plugin import off_status
from dsd_runtime.protocol import (
    HISTORY_PATH,
    MAX_BODY_BYTES,
    PROBLEM_CONTENT_TYPE,
    SCHEDULE_PATH,
    STATUS_PATH,
    FieldProblem,
    ProblemDocument,
    SchedulePut,
)
from dsd_runtime.readers import Line, LineIsFullError, Shared
from dsd_runtime.readiness import Readiness, ReadinessProbe

logger = logging.getLogger("vllm.dsd.routes")

ENGINE_TIMEOUT_SECONDS: Final = 10.0
"""How long an engine core may take to answer; it does between two steps."""

ROLL_BACK_SECONDS: Final = 1.0
"""How long the answer to a refused PUT waits for the other engine cores to be back where they were."""

MAX_WAITING_WRITERS: Final = 8
"""PUTs that may wait for the one before them. There is one operator; more than a few are a mistake or a flood."""

TITLES: Final = {
    400: ("malformed", "The request is malformed"),
    401: ("unauthorized", "A valid token is needed"),
    403: ("forbidden", "Writing is not allowed"),
    409: ("stale", "A newer schedule is known"),
    413: ("too-large", "The body is too large"),
    422: ("impossible", "This schedule is not possible with this engine"),
    503: ("engine-unavailable", "The engine does not answer, or is not ready"),
}
OUT_OF_RANGE: Final = frozenset(
    {"greater_than_equal", "less_than_equal", "too_short", "too_long", "string_too_short", "string_too_long"}
)
"""Pydantic's errors about values of the right type."""


class RequestProblemError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, detail: str, errors: Sequence[FieldProblem] = ()) -> None:
        super().__init__(detail)
        kind, title = TITLES[status]
        self.document = ProblemDocument(
            type=f"urn:dsd:problem:{kind}", title=title, status=status, detail=detail, errors=tuple(errors)
        )


class Engines:
    """All engine cores behind one engine client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._statuses = Shared(self._read_status)
        self._readiness = Readiness()
        self._histories = Shared(lambda: self.call("dsd_history"))
        self._writers = Line(MAX_WAITING_WRITERS)
        self._rolling_back: set[asyncio.Task[None]] = set()

    async def call(self, method: str, *arguments: str) -> list[Any]:
        """Call a utility everywhere; raises RequestProblemError 503 unless all answer in time."""
        if self._client is None:
            raise RequestProblemError(503, "this server has no engine")
        try:
            async with asyncio.timeout(ENGINE_TIMEOUT_SECONDS):
                return await compat.call_engines(self._client, method, *arguments)
        except TimeoutError:
            detail = f"an engine core did not answer within {ENGINE_TIMEOUT_SECONDS:.0f} s; try again"
            raise RequestProblemError(503, detail) from None
        except Exception as error:
            logger.exception("calling %s on the engine failed", method)
            raise RequestProblemError(503, f"the engine failed: {error}") from error

    async def status(self) -> dict[str, Any]:
        """The status of all engine cores as one document, never from before this call."""
        if compat.gate().mode == "off":
            return off_status(compat.gate().reason, getattr(self._client, "vllm_config", None))
        return await self._statuses.read()

    async def ready(self) -> None:
        """Raise RequestProblemError 503 while the engine has yet to begin with its schedule; see `readiness`."""
        if self._client is not None and (problem := await self._readiness.problem(self.status)) is not None:
            raise RequestProblemError(503, problem)

    async def _read_status(self) -> dict[str, Any]:
        return merge(await self.call("dsd_status"))

    async def history(self) -> dict[str, Any]:
        """What each engine core has used since it started."""
        if compat.gate().mode == "off":
            return {"mode": "off", "engines": []}
        told = [core for core in await self._histories.read() if core is not None]
        return {"mode": "on" if told else "off", "engines": sorted(told, key=itemgetter("engine"))}

    async def put(self, put: SchedulePut) -> dict[str, Any]:
        """Let every engine core use the schedule, or none; answers with the status after it."""
        if compat.gate().mode == "off":
            raise RequestProblemError(422, f"the schedule changes only with a restart: {compat.gate().reason}")
        async with self._turn():
            body = put.model_dump_json(by_alias=True)
            if compat.engine_count(self._client) > 1:
                refuse_if_any(await self.call("dsd_check", body))
            return merge([answer["status"] for answer in await self._commit(body)])

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            async with self._writers.turn():
                yield
        except LineIsFullError:
            detail = f"{MAX_WAITING_WRITERS} PUTs wait for the one before them; try again"
            raise RequestProblemError(503, detail) from None

    async def _commit(self, body: str) -> list[dict[str, Any]]:
        change = uuid.uuid4().hex
        try:
            answers = await self.call("dsd_put", body, change)
            refuse_if_any(answers)
        except RequestProblemError:
            await self._roll_back(change)
            raise
        return answers

    async def _roll_back(self, change: str) -> None:
        """Undo a put everywhere. Calls reach an engine core in order, so this also undoes one that a slow engine core
        has yet to execute; the client does not wait for that."""
        task = asyncio.create_task(self._try_roll_back(change))
        self._rolling_back.add(task)
        task.add_done_callback(self._rolling_back.discard)
        await asyncio.wait({task}, timeout=ROLL_BACK_SECONDS)

    async def _try_roll_back(self, change: str) -> None:
        # `call` has logged what is worth it, and the client gets the reason of the PUT itself.
        with contextlib.suppress(RequestProblemError):
            await self.call("dsd_roll_back", change)


def refuse_if_any(answers: Sequence[dict[str, Any]]) -> None:
    """Raise the problem of the first engine core that refuses; a stale revision goes before everything else."""
    for result, status in (("stale", 409), ("invalid", 422), ("off", 422)):
        for answer in answers:
            if answer["result"] == result:
                problems = [FieldProblem(**p) for p in answer.get("problems", ())]
                restart = f"the schedule changes only with a restart: {answer.get('reason')}"
                detail = "; ".join(p.message for p in problems) or restart
                raise RequestProblemError(status, detail, problems)


def merge(statuses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One document for all engine cores: of schedules that differ for a moment, the oldest counts as in use.

    A fault that several have is told once, as of when it began.
    """
    cores = [core for status in statuses for core in status.get("engines", ())]
    oldest = min(statuses, key=age)
    merged = dict(oldest)
    merged["engines"] = sorted(cores, key=lambda core: int(core["engine"]))
    faults = sorted((fault for status in statuses for fault in status.get("faults", ())), key=itemgetter("since"))
    merged["faults"] = list({fault["message"]: fault for fault in reversed(faults)}.values())[::-1]
    errors = [status["lastError"] for status in statuses if "lastError" in status]
    return merged | ({"lastError": errors[0]} if errors else {})


def age(status: dict[str, Any]) -> int:
    """Order of statuses by the revision they show; one without comes first."""
    revision = status.get("schedule", {}).get("revision")
    return int(revision["number"]) if revision else -1


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For json.loads: a key given twice is an error, not a choice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice in one object")
    return found


def not_a_number(name: str) -> Any:
    """For json.loads: NaN and Infinity are not JSON."""
    raise ValueError(f"{name} is not JSON")


def parse_put(content: bytes) -> SchedulePut:
    """Parse the body of a PUT; raises RequestProblemError 400, or 422 where only values are out of range."""
    try:
        data = json.loads(content.decode(), object_pairs_hook=unique_keys, parse_constant=not_a_number)
    except (ValueError, RecursionError) as error:
        raise RequestProblemError(400, f"the body is not strict JSON: {error}") from error
    if not isinstance(data, dict):
        raise RequestProblemError(400, "the body must be an object with revision and ranges")
    try:
        return SchedulePut.model_validate_json(content)
    except ValidationError as error:
        errors = field_errors(error)
        problems = [FieldProblem(field=field, message=message) for field, message, _ in errors]
        status = 422 if all(kind in OUT_OF_RANGE for _, _, kind in errors) else 400
        detail = "; ".join(f"{p.field}: {p.message}" for p in problems)
        raise RequestProblemError(status, detail, problems) from error


async def read_body(request: Any) -> bytes:
    """The body, if it is within the limit; what is beyond is never read."""
    too_large = RequestProblemError(413, f"the body may have {MAX_BODY_BYTES} bytes; 32 ranges take about 3,000")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > MAX_BODY_BYTES:
        raise too_large
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY_BYTES:
            raise too_large
    return bytes(content)


def check_token(access: Access, request: Any) -> None:
    """Raise RequestProblemError unless the request may write."""
    try:
        access.check([value for name, value in request.headers.raw if name == b"authorization"])
    except AuthError as error:
        raise RequestProblemError(error.status, error.detail) from error


def response(status: int, content: dict[str, Any], media_type: str = "application/json") -> Any:
    """A JSON response of Starlette."""
    from starlette.responses import Response

    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "1"} if status == 503 else {}
    return Response(json.dumps(content), status, headers | {"Cache-Control": "no-store"}, media_type)


def problem_response(problem: RequestProblemError) -> Any:
    """The problem document of a refused request."""
    return response(problem.document.status, problem.document.dump(), PROBLEM_CONTENT_TYPE)


class DsdEndpoints:
    """Entry point `dsd_http` of the group vllm.endpoint_plugins."""

    name = "dsd_http"
    required_tasks = None

    def __init__(self) -> None:
        self._engines = Engines(None)
        self._access = Access()
        self._following: asyncio.Task[None] | None = None

    def attach_router(self, app: Any) -> None:
        """Add the routes."""
        from starlette.requests import ClientDisconnect, Request

        async def get_status(_: Request) -> Any:
            try:
                return response(200, await self._engines.status())
            except RequestProblemError as problem:
                return problem_response(problem)

        async def get_history(_: Request) -> Any:
            try:
                return response(200, await self._engines.history())
            except RequestProblemError as problem:
                return problem_response(problem)

        async def put_schedule(request: Request) -> Any:
            try:
                await asyncio.to_thread(check_token, self._access, request)
                return response(200, await self._engines.put(parse_put(await read_body(request))))
            except RequestProblemError as problem:
                return problem_response(problem)
            except ClientDisconnect:  # nobody reads this; without it the log had a traceback
                return problem_response(RequestProblemError(400, "the connection ended before the body did"))

        app.add_middleware(ReadinessProbe, refusal=self._refuse_probe)
        if (notice := draining.notice()) is not None:
            app.add_middleware(draining.LastResponses, file=notice)
        app.add_api_route(STATUS_PATH, get_status, methods=["GET"], summary="Schedule and envelope of this engine")
        app.add_api_route(HISTORY_PATH, get_history, methods=["GET"], summary="Schedules used since the start")
        app.add_api_route(SCHEDULE_PATH, put_schedule, methods=["PUT"], summary="Change the schedule while it runs")

    async def _refuse_probe(self) -> Any:
        try:
            await self._engines.ready()
        except RequestProblemError as problem:
            return problem_response(problem)
        return None

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:  # noqa: ARG002
        """Keep the engine client; a render server has none."""
        self._engines = Engines(engine_client)
        if engine_client is not None and compat.gate().mode == "on":
            open_streams.end_with_the_engine(engine_client)
            if (notice := draining.notice()) is not None:
                leaving = draining.Leaving(state, notice)
                leaving.end_in_time(engine_client)
                self._following = asyncio.create_task(leaving.follow(), name="dsd leaving")
