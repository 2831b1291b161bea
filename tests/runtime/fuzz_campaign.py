"""Sends what the bodies campaign generates to a real engine and holds every answer against `fuzz_rules`.

The engine looks at its config file when it likes, about once a second, so between two requests it may or may not have
done so: `states` holds every state it can be in, and each answer leaves those that fit. None left is a failure.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import httpx

from dsd_runtime.protocol import PROBLEM_CONTENT_TYPE, ProblemDocument
from tests.runtime import fuzz_files, tokens
from tests.runtime.conftest import Engine
from tests.runtime.fuzz_bodies import Recipe
from tests.runtime.fuzz_files import Write
from tests.runtime.fuzz_rules import Body, Model, read
from tests.runtime.server import wait_until

MAXIMUM: Final = 4
TYPES: Final = {
    400: "malformed",
    401: "unauthorized",
    403: "forbidden",
    409: "stale",
    413: "too-large",
    422: "impossible",
}
"""Every documented refusal that is no fault of the engine."""

CHECK_EVERY: Final = 100


class Campaign:
    """One engine, the states it can be in, and what was counted."""

    def __init__(self, engine: Engine) -> None:
        """The engine gets a schedule to start from; its config file is that of the fixture."""
        self.engine = engine
        self.answers: Counter[int] = Counter()
        self.written: Counter[str] = Counter()
        self.cut_off = 0
        self._auth = tokens.auth_section(tokens.public_jwk(engine.key, "one"))
        self._file: Body | None = None
        self._healing: tuple[int, Body, bool] | None = None
        self._start()
        self._output = self._complete()

    def _start(self) -> None:
        number = self.engine.next_number()
        self._file = Body(fuzz_files.OWNER, number, ((1, 64, 2),))
        fuzz_files.replace(self.engine.config, fuzz_files.content(self._file, self._auth))
        start = Model(MAXIMUM, self._file.triples, None, self._file.owner, number, "file")
        wait_until("the first file is in force", lambda: start.shows(self._schedule()))
        self.states = {start}

    @property
    def likely(self) -> Model:
        """A state the engine can be in: the newest one."""
        return max(self.states, key=lambda state: state.number)

    def _schedule(self) -> dict[str, Any]:
        found: dict[str, Any] = self.engine.server.status()["schedule"]
        return found

    def _looked(self, states: set[Model]) -> set[Model]:
        """`states`, and those after the engine has looked at the file."""
        return states | {state.read_file(self._file) for state in states} if self._file is not None else states

    def step(self, action: Recipe | Write) -> None:
        """Do one action and check what came of it."""
        self._heal()
        if isinstance(action, Write):
            self._write(action)
        else:
            self._put(action)
        if sum(self.answers.values()) % CHECK_EVERY == 0:
            self.check()

    def _put(self, recipe: Recipe) -> None:
        content = recipe.content(self.likely)
        try:
            answer = self._send(recipe, content)
        except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
            # A server that refuses to read a body closes the connection, and the answer may be lost on the way.
            assert read(content) == frozenset({413}) or self._refused_before(recipe), "the connection was closed"
            self.cut_off += 1
            return
        self.answers[answer.status_code] += 1
        self.states = self._fitting(recipe, content, answer)
        if answer.status_code != 200:
            check_problem(answer)

    def _send(self, recipe: Recipe, content: bytes) -> httpx.Response:
        token = self._token(recipe.token)
        headers: list[tuple[bytes, bytes]] = [(k.encode(), v.encode("latin-1")) for k, v in recipe.headers]
        if token is not None:
            headers.append((b"Authorization", f"Bearer {token}".encode()))
        body = pieces(content) if recipe.chunked else content
        return self.engine.server.client.put("/dsd/v1/schedule", content=body, headers=headers)

    def _token(self, kind: str) -> str | None:
        """A new one each time: a token lasts ten minutes, a campaign longer."""
        if kind == "another audience":
            return tokens.mint(self.engine.key, aud=["another"])
        if kind == "good":
            return tokens.mint(self.engine.key)
        return kind if kind == "rubbish" else None

    def _refused_before(self, recipe: Recipe) -> set[int]:
        """The statuses with which it is refused before its body is read."""
        if self._file is None:
            return {403}
        return {"good": set[int](), "none": {401}, "rubbish": {401}, "another audience": {403}}[recipe.token]

    def _fitting(self, recipe: Recipe, content: bytes, answer: httpx.Response) -> set[Model]:
        """The states in which the engine answers so; fails where there is none."""
        before = self._looked(self.states)
        body = read(content)
        refused = self._refused_before(recipe) or (body if isinstance(body, frozenset) else set())
        if isinstance(body, frozenset) or refused:
            fitting = before if answer.status_code in refused else set()
            expected: Any = refused
        else:
            outcomes = [state.judge(body) for state in before]
            expected = {status for status, _ in outcomes}
            fitting = {after for status, after in outcomes if status == answer.status_code}
            if answer.status_code == 200:
                shown = answer.json()["schedule"]
                fitting = {state for state in self._looked(fitting) if state.shows(shown)}
        assert fitting, (
            f"{recipe}\n{content[:2000]!r}\nanswered {answer.status_code} {answer.text[:1000]}\n"
            f"expected {expected} in one of {before}"
        )
        return fitting

    def _write(self, write: Write) -> None:
        body = write.body(self.likely)
        good = fuzz_files.content(body, self._auth)
        broken = write.broken or ("half" if not write.whole else None)
        self.written[broken or "good"] += 1
        self.states = self._looked(self.states)
        if broken is None:
            self._file, self._healing = body, None
            fuzz_files.replace(self.engine.config, good)
            return
        self._file, self._healing = None, (write.heals_after, body, write.whole)
        data = fuzz_files.BROKEN[broken](good)
        if write.whole or data is None:
            fuzz_files.replace(self.engine.config, data)
        else:
            self.engine.config.write_bytes(data)

    def _heal(self, at_once: bool = False) -> None:
        """A broken file becomes good again, after some more actions or at once."""
        if self._healing is None:
            return
        left, body, whole = self._healing
        if left > 0 and not at_once:
            self._healing = left - 1, body, whole
            return
        self._file, self._healing = body, None
        good = fuzz_files.content(body, self._auth)
        if whole:
            fuzz_files.replace(self.engine.config, good)
        else:
            self.engine.config.write_bytes(good)

    def check(self) -> None:
        """The status shows a state the engine can be in, and it serves as it did."""
        shown = self._schedule()
        fitting = {state for state in self._looked(self.states) if state.shows(shown)}
        assert fitting, f"in force is {shown}, expected one of {self._looked(self.states)}"
        self.states = fitting
        assert self._complete() == self._output

    def settle(self) -> None:
        """The end: the last file is good, the engine has looked at it, and the fixture can go on."""
        self._heal(at_once=True)
        after = {state.read_file(self._file) for state in self.states if self._file is not None}
        wait_until("the file is looked at", lambda: any(state.shows(self._schedule()) for state in after))
        self.states = after
        self.check()
        self.engine.count_on(self.likely.number)

    def _complete(self) -> list[int]:
        return self.engine.server.complete("the cat sat on the mat and the cat", 12)


def pieces(content: bytes) -> Iterator[bytes]:
    """A body without a declared length."""
    for start in range(0, len(content), 5000):
        yield content[start : start + 5000]


def check_problem(answer: httpx.Response) -> None:
    """A documented status, with its problem document."""
    status = answer.status_code
    assert status in TYPES, answer.text
    assert answer.headers["content-type"] == PROBLEM_CONTENT_TYPE
    document = ProblemDocument.model_validate_json(answer.content)
    assert (document.status, document.type) == (status, f"urn:dsd:problem:{TYPES[status]}")
    assert document.detail
    assert json.loads(answer.content).keys() <= {"type", "title", "status", "detail", "errors"}
    if status in (409, 422):
        assert document.errors
        assert all(error.field and error.message for error in document.errors)
