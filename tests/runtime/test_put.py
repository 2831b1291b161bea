"""Bad PUTs to a real engine: the right status, a problem document, and the schedule in use untouched."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from dsd_runtime.protocol import MAX_BODY_BYTES, ProblemDocument
from tests.runtime import tokens
from tests.runtime.conftest import Engine, wire
from tests.runtime.examples import OWNER

pytestmark = pytest.mark.engine


def body(engine: Engine, *triples: tuple[int, int, int], **changes: Any) -> dict[str, Any]:
    """A body that would be accepted if its ranges were good."""
    revision = {"owner": OWNER, "number": engine.next_number()}
    return {"revision": revision, "ranges": wire(list(triples) or [(1, 64, 2)])} | changes


CASES: dict[str, tuple[int, Callable[[Engine], Any]]] = {
    "no JSON": (400, lambda _: b"hello"),
    "empty": (400, lambda _: b""),
    "cut off": (400, lambda e: json.dumps(body(e))[:-1].encode()),
    "not UTF-8": (400, lambda _: b"\xff\xfe\x00"),
    "list": (400, lambda e: [body(e)]),
    "null": (400, lambda _: None),
    "NaN": (400, lambda e: body(e, ranges=[{"startBatchSize": float("nan")}])),
    "duplicate key": (400, lambda e: json.dumps(body(e)).replace("{", '{"ranges": [], ', 1).encode()),
    "deep": (400, lambda _: b"[" * 60_000),
    "no revision": (400, lambda _: {"ranges": wire([(1, 64, 2)])}),
    "revision of the wrong type": (400, lambda e: body(e, revision=7)),
    "no ranges": (400, lambda e: {"revision": body(e)["revision"]}),
    "K as text": (400, lambda e: body(e, ranges=[wire([(1, 64, 2)])[0] | {"numSpeculativeTokens": "2"}])),
    "K as a fraction": (400, lambda e: body(e, ranges=[wire([(1, 64, 2)])[0] | {"numSpeculativeTokens": 2.5}])),
    "K as a truth value": (400, lambda e: body(e, ranges=[wire([(1, 64, 2)])[0] | {"numSpeculativeTokens": True}])),
    "unknown field": (400, lambda e: body(e, generation=3)),
    "smoothing as a number": (400, lambda e: body(e, smoothing=20)),
    "dwell as a fraction": (400, lambda e: body(e, smoothing={"dwellSteps": 1.5})),
    "unknown field of smoothing": (400, lambda e: body(e, smoothing={"dwell": 20})),
    "huge body": (413, lambda e: json.dumps(body(e)).encode() + b" " * MAX_BODY_BYTES),
    "empty schedule": (422, lambda e: body(e, ranges=[])),
    "K above the maximum": (422, lambda e: body(e, (1, 64, 5))),
    "K above everything": (422, lambda e: body(e, (1, 64, 2**31))),
    "negative K": (422, lambda e: body(e, (1, 64, -1))),
    "overlap": (422, lambda e: body(e, (1, 8, 2), (8, 64, 1))),
    "descending": (422, lambda e: body(e, (9, 64, 2), (1, 8, 1))),
    "does not start at 1": (422, lambda e: body(e, (2, 64, 2))),
    "start above end": (422, lambda e: body(e, (1, 4, 1), (9, 5, 2))),
    "too many ranges": (422, lambda e: body(e, *[(i, i, 1) for i in range(1, 34)])),
    "negative dwell": (422, lambda e: body(e, smoothing={"dwellSteps": -1})),
    "margin too wide": (422, lambda e: body(e, smoothing={"marginPercent": 51})),
    "stale": (409, lambda e: body(e, revision={"owner": OWNER, "number": 1})),
    "same number, other content": (409, lambda e: body(e, (1, 64, 1), revision=in_use(e)["revision"])),
    "same number, other owner": (409, lambda e: body(e, revision=in_use(e)["revision"] | {"owner": "x"})),
}


def in_use(engine: Engine) -> dict[str, Any]:
    """The schedule in use, with its revision."""
    schedule: dict[str, Any] = engine.server.status()["schedule"]
    return schedule


@pytest.fixture
def untouched(engine: Engine) -> Any:
    """Fails when the schedule in use is not the one from before the test."""
    engine.swap([(1, 64, 2)])
    before = in_use(engine)
    yield
    assert in_use(engine) == before


def check_problem(answer: Any, status: int) -> ProblemDocument:
    """The answer must be a problem document with this status."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = ProblemDocument.model_validate_json(answer.content)
    assert document.status == status
    assert document.detail
    return document


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("case", CASES)
def test_bad_body(engine: Engine, case: str) -> None:
    status, make = CASES[case]
    document = check_problem(engine.put(make(engine)), status)
    if status in (409, 422):
        assert document.errors
        assert all(error.field and error.message for error in document.errors)


@pytest.mark.usefixtures("untouched")
def test_huge_body_without_a_length(engine: Engine) -> None:
    """Chunked, so that only reading can show how large it is. The server may close before all is sent."""
    headers = {"Authorization": f"Bearer {tokens.mint(engine.key)}"}
    pieces = (b" " * 4096 for _ in range(40))
    check_problem(engine.server.client.put("/dsd/v1/schedule", content=pieces, headers=headers), 413)


BAD_TOKENS: dict[str, tuple[int, Callable[[tokens.PrivateKey], str | None]]] = {
    "none": (401, lambda _: None),
    "rubbish": (401, lambda _: "abc"),
    "expired": (401, lambda key: tokens.mint(key, exp=int(time.time()) - 1000)),
    "another key": (401, lambda _: tokens.mint(tokens.new_ec())),
    "unknown key": (401, lambda key: tokens.mint(key, "two")),
    "oversized": (401, lambda _: "a" * 20_000),
    "another deployment": (403, lambda key: tokens.mint(key, aud=["dsd-operator.io/team-a/other"])),
    "another account": (403, lambda key: tokens.mint(key, sub="system:serviceaccount:team-a:default")),
}


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("case", BAD_TOKENS)
def test_bad_token(engine: Engine, case: str) -> None:
    status, make = BAD_TOKENS[case]
    answer = engine.put(body(engine), token=make(engine.key))
    check_problem(answer, status)
    assert ("www-authenticate" in answer.headers) == (status == 401)


@pytest.mark.usefixtures("untouched")
def test_token_comes_before_the_body(engine: Engine) -> None:
    """Who may not write learns nothing about schedules, and cannot make the engine read a large body."""
    check_problem(engine.put(b"x" * 10 * MAX_BODY_BYTES, token=None), 401)


def test_same_put_again_is_fine(engine: Engine) -> None:
    again = body(engine, (1, 64, 2))
    first, second = engine.put(again), engine.put(again)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json()["schedule"] == second.json()["schedule"]


def test_new_keys_count_at_once(engine: Engine) -> None:
    """The issuer's keys are rotated: the file brings the new ones, and no restart is needed."""
    old, engine.key = engine.key, tokens.new_ec()
    number = in_use(engine)["revision"]["number"]
    check_problem(engine.put(body(engine)), 401)
    engine.write_config(number, engine.in_use())
    engine.swap([(1, 64, 1)])
    check_problem(engine.put(body(engine), token=tokens.mint(old)), 401)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "GET"])
def test_other_methods(engine: Engine, method: str) -> None:
    assert engine.server.client.request(method, "/dsd/v1/schedule").status_code == 405
