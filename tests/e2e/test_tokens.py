"""Who may change a schedule, on a real pod with real service-account tokens. Bodies are tested with the runtime."""

from http import HTTPStatus

import pytest

from dsd_runtime.protocol import PROBLEM_CONTENT_TYPE, EngineStatus, Revision, SchedulePut
from dsd_runtime.schedule import from_triples
from tools.testbed.engine import Engine
from tools.testbed.handle import Handle
from tools.testbed.install import Installation
from tools.testbed.kube import Json

OTHER = from_triples([(1, 64, 1), (65, 128, 4)])
"""A schedule that no other test uses: if it is ever in use, a refused request got through."""

pytestmark = pytest.mark.e2e


def test_without_a_token_nothing_changes(shared: Handle) -> None:
    refuses(shared.engine(), put_body(shared.engine(), newer=True), None, HTTPStatus.UNAUTHORIZED)


def test_a_token_for_another_deployment_is_refused(shared: Handle, installation: Installation) -> None:
    token = installation.mint(f"dsd-operator.io/{shared.namespace}/somebody-else")

    refuses(
        shared.engine(), put_body(shared.engine(), newer=True), token, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN
    )


def test_a_token_of_another_service_account_is_refused(shared: Handle) -> None:
    account = shared.child("ServiceAccount")["metadata"]["name"]
    token = shared.kube.token(shared.namespace, account, shared.audience())

    refuses(
        shared.engine(), put_body(shared.engine(), newer=True), token, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN
    )


def test_a_good_token_with_a_stale_revision_is_a_conflict(shared: Handle, installation: Installation) -> None:
    token = installation.mint(shared.audience())

    refuses(shared.engine(), put_body(shared.engine(), newer=False), token, HTTPStatus.CONFLICT)


def put_body(engine: Engine, *, newer: bool) -> Json:
    """A PUT of another schedule, one revision above or below the one in use."""
    state = engine.status().schedule
    assert state is not None
    assert state.revision is not None
    number = state.revision.number + (1 if newer else -1)
    return SchedulePut(revision=Revision(owner=state.revision.owner, number=number), ranges=OTHER).dump()


def refuses(engine: Engine, body: Json, token: str | None, *expected: HTTPStatus) -> None:
    """The engine refuses with one of the expected codes and a problem document; what it uses stays as it was."""
    before = use_of(engine.status())

    answer = engine.put_schedule(body, token)

    assert answer.status_code in expected, answer.text
    assert answer.headers["content-type"].startswith(PROBLEM_CONTENT_TYPE)
    assert answer.json()["status"] == answer.status_code
    assert use_of(engine.status()) == before


def use_of(status: EngineStatus) -> tuple[object, ...]:
    """The schedule in use as a whole and in every engine core."""
    return status.schedule, *(core.schedule for core in status.engines)
