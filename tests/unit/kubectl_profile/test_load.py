"""Streams and the closed loop over real sockets on loopback."""

import pytest

from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.load import Load
from kubectl_dsd.profile.prompts import Prompt
from kubectl_dsd.profile.streams import Connection, RequestFailure, Settings, body_of
from tests.unit.kubectl_profile.sse_server import Cut, SseServer
from tools.testbed.waiting import wait_for

PROMPTS = tuple(Prompt(text=f"prompt {i}") for i in range(5))
SETTINGS = Settings("m", max_tokens=6)
SECONDS = 30.0


def counts(server: SseServer, key: str | None = None) -> list[int]:
    """One completion of six tokens."""
    return list(Connection(server.address, key).stream(body_of(PROMPTS[0], SETTINGS)))


@pytest.mark.parametrize("per_event", [1, 2, 4])
def test_a_stream_counts_its_tokens(per_event: int) -> None:
    with SseServer(per_event=per_event) as server:
        found = counts(server)

    assert found == sorted(found)
    assert found[-1] == 6


def test_the_key_goes_along() -> None:
    with SseServer() as server:
        counts(server, key="secret")

    assert server.keys == ["Bearer secret"]


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_refusal_carries_the_engines_words(status: int) -> None:
    with SseServer(fail=status) as server, pytest.raises(RequestFailure, match="no such thing") as refused:
        counts(server)

    assert refused.value.status == status
    assert ("--api-key" in refused.value.hint) == (status == 401)


@pytest.mark.parametrize("cut", ["connection", "done"])
def test_a_stream_that_ends_early_is_a_failure(cut: Cut) -> None:
    with SseServer(cut=cut) as server, pytest.raises(RequestFailure, match="broke"):
        counts(server)


def test_nobody_there_is_a_failure() -> None:
    with SseServer() as server:
        address = server.address
    with pytest.raises(RequestFailure, match="broke"):
        list(Connection(address).stream(body_of(PROMPTS[0], SETTINGS)))


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://x", "http://"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(Failure, match="no address"):
        Connection(address)


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_exactly_so_many_requests_are_in_flight(concurrency: int) -> None:
    """The server answers only when so many run at once: a load with fewer would get stuck."""
    with SseServer(together=concurrency) as server, Load([server.address], concurrency, PROMPTS, SETTINGS) as load:
        load.wait_started(SECONDS)
        wait_for("requests", lambda: len(server.bodies), lambda n: n >= 6 * concurrency, SECONDS, 0.01)
        load.check()

    assert server.most == concurrency


def test_every_address_has_the_same_number() -> None:
    with (
        SseServer(together=2) as one,
        SseServer(together=2) as other,
        Load([one.address, other.address], 2, PROMPTS, SETTINGS),
    ):
        wait_for("requests", lambda: min(len(one.bodies), len(other.bodies)), lambda n: n >= 8, SECONDS, 0.01)

    assert (one.most, other.most) == (2, 2)


def test_the_tokens_are_those_that_came() -> None:
    with SseServer() as server:
        with Load([server.address], 1, PROMPTS, SETTINGS) as load:
            wait_for("requests", lambda: len(server.bodies), lambda n: n >= 4, SECONDS, 0.001)
        asked = len(server.bodies)

    assert 6 * (asked - 1) <= load.tokens <= 6 * asked, "the client asks anew when it has read an answer to its end"


def test_prompts_come_in_turn_from_the_first_one_asked_for() -> None:
    with SseServer() as server, Load([server.address], 1, PROMPTS, SETTINGS, first=3):
        wait_for("requests", lambda: len(server.bodies), lambda n: n >= 6, SECONDS, 0.001)

    asked = [body["prompt"] for body in server.bodies[:6]]
    assert asked == [f"prompt {i}" for i in (3, 4, 0, 1, 2, 3)]


def test_the_first_requests_do_not_end_all_at_once() -> None:
    with SseServer(together=3) as server, Load([server.address], 3, PROMPTS, SETTINGS) as load:
        load.wait_started(SECONDS)

    assert sorted(body["max_tokens"] for body in server.bodies[:3]) == [2, 4, 6]


def test_a_failure_of_a_client_ends_the_measurement() -> None:
    with (
        SseServer(fail=503) as server,
        Load([server.address], 2, PROMPTS, SETTINGS) as load,
        pytest.raises(RequestFailure, match="no such thing"),
    ):
        load.wait_started(SECONDS)


def test_clients_that_wait_for_ever_are_ended() -> None:
    """The server waits for a second request that never comes; leaving the block must not."""
    with SseServer(together=2) as server:
        with Load([server.address], 1, PROMPTS, SETTINGS):
            wait_for("the request", lambda: server.most, lambda n: n == 1, SECONDS, 0.01)
        assert server.patient(), "the client ended only when the server gave up"
