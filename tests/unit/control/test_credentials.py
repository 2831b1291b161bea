"""Tokens and keys: through rotations, and clocks that go back."""

import asyncio
from typing import Any

import pytest

from dsd_operator.cluster.errors import Retry
from dsd_operator.cluster.keys import REFRESH_AFTER_REFUSAL_SECONDS, REFRESH_SECONDS, RETRY_SECONDS, Keys
from dsd_operator.cluster.tokens import LIFETIME_SECONDS, Tokens
from tests.unit.control.clock import FakeClock


class FakeApi:
    """The API server's token and discovery endpoints."""

    def __init__(self) -> None:
        self.minted = 0
        self.granted = LIFETIME_SECONDS
        self.keys: list[dict[str, str]] = [{"kid": "1"}]
        self.down = False
        self.reads = self.tries = 0
        self.named_issuer = "https://issuer"

    async def request_token(self, namespace: str, account: str, audience: str, seconds: int) -> dict[str, Any]:
        assert seconds == LIFETIME_SECONDS
        await asyncio.sleep(0)
        self.minted += 1
        token = f"{namespace}/{account}/{audience}/{self.minted}"
        return {"status": {"token": token}, "spec": {"expirationSeconds": self.granted}}

    async def issuer(self) -> str:
        return self.named_issuer

    async def signing_keys(self) -> dict[str, Any]:
        self.tries += 1
        if self.down:
            raise Retry(0, "down")
        self.reads += 1
        return {"keys": list(self.keys)}


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(api: FakeApi, clock: FakeClock) -> Tokens:
    return Tokens(api, "system", "operator", clock)  # type: ignore[arg-type]


@pytest.fixture
def keys(api: FakeApi, clock: FakeClock) -> Keys:
    return Keys(api, clock)  # type: ignore[arg-type]


async def test_a_token_is_kept_for_half_its_life(tokens: Tokens, clock: FakeClock) -> None:
    first = await tokens.get("a")
    assert first == "system/operator/a/1"
    clock.advance(LIFETIME_SECONDS / 2 - 1)
    assert await tokens.get("a") == first
    clock.advance(1)
    assert await tokens.get("a") != first


async def test_the_granted_life_counts_and_not_the_asked_one(tokens: Tokens, api: FakeApi, clock: FakeClock) -> None:
    api.granted = 2 * LIFETIME_SECONDS
    first = await tokens.get("a")
    clock.advance(LIFETIME_SECONDS - 1)
    assert await tokens.get("a") == first
    clock.advance(1)
    assert await tokens.get("a") != first


async def test_audiences_do_not_share(tokens: Tokens) -> None:
    assert await tokens.get("a") != await tokens.get("b")


async def test_many_pods_that_ask_at_once_get_one_token(tokens: Tokens, api: FakeApi) -> None:
    assert len(set(await asyncio.gather(*(tokens.get("a") for _ in range(10))))) == 1
    assert api.minted == 1


async def test_a_refused_token_is_never_used_again(tokens: Tokens) -> None:
    first = await tokens.get("a")
    tokens.drop("a", first)
    second = await tokens.get("a")
    assert second != first
    tokens.drop("a", first)  # a slower pod refuses the first one as well
    assert await tokens.get("a") == second


async def test_keys_are_read_once_and_then_at_intervals(keys: Keys, api: FakeApi, clock: FakeClock) -> None:
    await asyncio.gather(*(keys.current() for _ in range(5)))
    assert api.reads == 1
    clock.advance(REFRESH_SECONDS)
    await keys.current()
    assert api.reads == 2


async def test_an_old_key_stays_as_long_as_its_tokens_live(keys: Keys, api: FakeApi, clock: FakeClock) -> None:
    await keys.current()
    api.keys = [{"kid": "2"}]
    clock.advance(REFRESH_SECONDS)
    assert (await keys.current()).jwks == {"keys": [{"kid": "1"}, {"kid": "2"}]}
    clock.advance(LIFETIME_SECONDS + 1)
    assert (await keys.current()).jwks == {"keys": [{"kid": "2"}]}


async def test_a_new_issuer_is_taken_with_its_keys_and_the_old_keys_stay(
    keys: Keys, api: FakeApi, clock: FakeClock
) -> None:
    """After a refusal, which is what pods answer to a token of the new issuer; not only at the next interval."""
    assert (await keys.current()).issuer == "https://issuer"
    api.named_issuer, api.keys = "https://issuer-2", [{"kid": "2"}]
    clock.advance(REFRESH_AFTER_REFUSAL_SECONDS)
    assert (await keys.current()).issuer == "https://issuer"
    found = await keys.current(REFRESH_AFTER_REFUSAL_SECONDS)
    assert found.issuer == "https://issuer-2"
    assert found.jwks == {"keys": [{"kid": "1"}, {"kid": "2"}]}


async def test_the_order_of_the_answer_changes_nothing(keys: Keys, api: FakeApi) -> None:
    api.keys = [{"kid": "2"}, {"kid": "1"}]
    one = await keys.current()
    api.keys.reverse()
    assert await keys.current(max_age=0) == one


async def test_without_any_answer_there_are_no_keys(keys: Keys, api: FakeApi) -> None:
    api.down = True
    for _ in range(2):
        with pytest.raises(Retry):
            await keys.current()
    api.down = False
    assert (await keys.current()).keys == ({"kid": "1"},)


async def test_known_keys_outlive_an_outage_and_do_not_slow_each_pass(
    keys: Keys, api: FakeApi, clock: FakeClock
) -> None:
    known = await keys.current()
    api.down = True
    clock.advance(REFRESH_SECONDS)
    assert [await keys.current() for _ in range(3)] == [known] * 3
    assert api.tries == 2
    clock.advance(RETRY_SECONDS)
    api.down = False
    api.keys.append({"kid": "2"})
    assert len((await keys.current()).keys) == 2


async def test_what_is_known_of_the_keys_takes_no_request(keys: Keys, api: FakeApi) -> None:
    assert keys.known() is None
    current = await keys.current()
    api.keys = [*api.keys, {"kid": "new"}]
    assert keys.known() == current
    assert await keys.current(0) == keys.known() != current
