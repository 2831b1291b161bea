"""The wire format: camelCase, strict, nothing unknown, and what one side writes the other reads."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dsd_runtime.protocol import (
    MAX_BODY_BYTES,
    ConfigFile,
    Envelope,
    FieldProblem,
    ProblemDocument,
    Revision,
    SchedulePut,
    TokenFileAuth,
    TokenReviewAuth,
)
from dsd_runtime.schedule import (
    MAX_BATCH_SIZE,
    MAX_DWELL_STEPS,
    MAX_MARGIN_PERCENT,
    MAX_RANGES,
    Ranges,
    Smoothing,
    from_triples,
)
from tests.unit.runtime_core.strategies import smoothings, valid_ranges

RANGES = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3}]
REVISION = {"owner": "team-a/demo/uid", "number": 7}
PUT: dict[str, Any] = {"revision": REVISION, "ranges": RANGES}


@given(
    st.integers(1, 128).flatmap(valid_ranges),
    st.none() | smoothings(),
    st.integers(1, 2**53 - 1),
    st.text(min_size=1, max_size=80),
)
def test_a_config_file_reads_back_as_it_was_written(
    ranges: Ranges, smoothing: Smoothing | None, number: int, owner: str
) -> None:
    written = ConfigFile(revision=Revision(owner=owner, number=number), ranges=ranges, smoothing=smoothing)
    assert ConfigFile.model_validate_json(json.dumps(written.dump())) == written
    assert ("smoothing" in written.dump()) == (smoothing is not None)


def test_each_half_of_smoothing_may_be_left_out() -> None:
    def read(**smoothing: int) -> Smoothing | None:
        return SchedulePut.model_validate_json(json.dumps(PUT | {"smoothing": smoothing})).smoothing

    assert read() == Smoothing(dwell_steps=0, margin_percent=0)
    assert read(dwellSteps=20) == Smoothing(dwell_steps=20, margin_percent=0)
    assert read(marginPercent=10) == Smoothing(dwell_steps=0, margin_percent=10)


@pytest.mark.parametrize(
    "auth",
    [
        TokenReviewAuth(issuer="https://i", audience="a", subject="s", jwks={"keys": [{"kty": "EC"}]}),
        TokenFileAuth(token_file="/run/token"),
        None,
    ],
)
def test_both_ways_to_authorise_read_back(auth: TokenReviewAuth | TokenFileAuth | None) -> None:
    written = ConfigFile(ranges=from_triples([(1, 8, 3)]), auth=auth)
    assert ConfigFile.model_validate_json(json.dumps(written.dump())) == written
    assert ("auth" in written.dump()) == (auth is not None)


def test_names_on_the_wire_are_camel_case() -> None:
    envelope = Envelope(method="ngram", model_runner="V1", num_speculative_tokens=3, max_num_seqs=8)
    assert {"modelRunner", "numSpeculativeTokens", "maxNumSeqs", "verifyOnly", "allowedTokens"} <= set(envelope.dump())
    assert SchedulePut.model_validate_json(json.dumps(PUT)).ranges[0].start_batch_size == 1


def _without(key: str) -> dict[str, Any]:
    return {k: v for k, v in PUT.items() if k != key}


@pytest.mark.parametrize(
    "body",
    [
        _without("revision"),
        _without("ranges"),
        PUT | {"ranges": []},
        PUT | {"ranges": RANGES * (MAX_RANGES + 1)},
        PUT | {"ranges": {"1-8": 3}},
        PUT | {"force": True},
        PUT | {"revision": {"owner": "", "number": 1}},
        PUT | {"revision": {"owner": "o", "number": 0}},
        PUT | {"revision": {"owner": "o", "number": 2**53}},
        PUT | {"revision": {"owner": "o", "number": "7"}},
        PUT | {"revision": {"owner": "o", "number": 7.5}},
        PUT | {"revision": 7},
        PUT | {"smoothing": {"dwellSteps": -1}},
        PUT | {"smoothing": {"dwellSteps": MAX_DWELL_STEPS + 1}},
        PUT | {"smoothing": {"dwellSteps": 1.5}},
        PUT | {"smoothing": {"dwellSteps": "20"}},
        PUT | {"smoothing": {"marginPercent": -1}},
        PUT | {"smoothing": {"marginPercent": MAX_MARGIN_PERCENT + 1}},
        PUT | {"smoothing": {"dwell_seconds": 1}},
        PUT | {"smoothing": 20},
        [],
        None,
        "PUT",
    ],
)
def test_a_put_that_is_not_one_is_refused(body: object) -> None:
    with pytest.raises(ValidationError):
        SchedulePut.model_validate_json(json.dumps(body))


def test_the_largest_put_fits_the_body_limit() -> None:
    ends = range(MAX_BATCH_SIZE - MAX_RANGES, MAX_BATCH_SIZE)
    put = SchedulePut(
        revision=Revision(owner="o" * 512, number=2**53 - 1), ranges=from_triples((e, e, 128) for e in ends)
    )
    assert len(json.dumps(put.dump(), indent=2)) < MAX_BODY_BYTES


def test_models_cannot_be_changed() -> None:
    put = SchedulePut.model_validate_json(json.dumps(PUT))
    with pytest.raises(ValidationError):
        put.revision.number = 8


def test_problem_document_carries_its_fields() -> None:
    document = ProblemDocument(
        type="urn:dsd:impossible", title="t", status=422, detail="d", errors=(FieldProblem(field="f", message="m"),)
    )
    assert document.dump()["errors"] == [{"field": "f", "message": "m"}]
