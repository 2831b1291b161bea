"""The table of API errors."""

import json

import pytest

from dsd_operator.cluster.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    Retry,
    from_response,
    unreachable,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Invalid), (401, Retry), (403, Forbidden), (404, Gone), (405, Invalid), (406, Invalid), (408, Retry),
        (409, Conflict), (410, Retry), (413, Invalid), (415, Invalid), (418, Invalid), (422, Invalid), (429, Retry),
        (500, Retry), (502, Retry), (503, Retry), (504, Retry), (599, Retry),
    ],
)  # fmt: skip
def test_each_status_has_one_meaning(code: int, kind: type[ApiError]) -> None:
    body = json.dumps({"kind": "Status", "message": "because"}).encode()
    error = from_response(code, body)
    assert type(error) is kind
    assert (error.code, error.message) == (code, "because")


def test_retry_after_is_honoured() -> None:
    error = from_response(429, b"{}", "7")
    assert isinstance(error, Retry)
    assert error.delay == 7.0


@pytest.mark.parametrize("text", [None, "", "soon", "-3", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_retry_after_that_says_nothing_is_zero(text: str | None) -> None:
    error = from_response(503, b"{}", text)
    assert isinstance(error, Retry)
    assert error.delay == 0.0


@pytest.mark.parametrize("body", [b"", b"upstream connect error", b"[]", b"null", b"\xff\xfe"])
def test_a_body_that_is_no_status_still_makes_a_message(body: bytes) -> None:
    assert from_response(502, body).message == "the API server answered 502"


def test_a_namespace_that_is_being_deleted_is_gone_and_not_forbidden() -> None:
    details = {"causes": [{"reason": "NamespaceTerminating"}]}
    body = json.dumps({"message": "is being terminated", "reason": "Forbidden", "details": details}).encode()
    assert isinstance(from_response(403, body), Gone)


def test_no_answer_at_all_may_work_later() -> None:
    error = unreachable(TimeoutError())
    assert (type(error), error.code) == (Retry, 0)
    assert "TimeoutError" in error.message
