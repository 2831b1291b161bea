"""A worker that ends waits for its leader, and no longer than the leader may take."""

import socket

import pytest

from dsd_runtime import follow
from dsd_runtime.protocol import DRAIN_TIMEOUT_ENV
from dsd_runtime.usage import UsageError


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_INTERVAL_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
def test_it_ends_with_the_leader() -> None:
    answers = iter([True, True, True, False])
    follow.wait_while(lambda: next(answers), 60)
    assert list(answers) == []


@pytest.mark.usefixtures("quick")
def test_a_leader_that_stays_is_not_waited_for_for_ever() -> None:
    follow.wait_while(lambda: True, 0.05)


def test_whether_somebody_listens() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not follow.answers("127.0.0.1", port)
        server.listen()
        assert follow.answers("127.0.0.1", port)


@pytest.mark.usefixtures("quick")
def test_a_leader_that_is_gone_is_not_waited_for() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    follow.wait_for_leader({follow.LEADER_ENV: "127.0.0.1"}, port)
    follow.wait_for_leader({follow.LEADER_ENV: "no-such-leader.invalid"}, port)


def test_the_leader_has_its_time_to_drain_and_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(follow, "wait_while", lambda _, seconds: waited.append(seconds))
    for environment in ({}, {DRAIN_TIMEOUT_ENV: "600"}):
        follow.wait_for_leader({follow.LEADER_ENV: "127.0.0.1", **environment})
    assert waited == [30 + follow.MARGIN_SECONDS, 600 + follow.MARGIN_SECONDS]


def test_outside_of_a_group_it_is_refused() -> None:
    with pytest.raises(UsageError, match="LWS_LEADER_ADDRESS is not set"):
        follow.wait_for_leader({})
