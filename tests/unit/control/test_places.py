"""Namespaces that come, go and come back: what is served, and what is said about the rest."""

import asyncio

import pytest

from dsd_operator.cluster.errors import Forbidden, Retry
from dsd_operator.cluster.places import Places


class Api:
    """Answers for the namespaces it was told of, one set a look; the last one stays."""

    def __init__(self, *looks: set[str], silent: int = 0) -> None:
        self.looks = list(looks)
        self.silent = silent
        self.asked: list[str] = []

    async def first(self, _: object, namespace: str) -> None:
        self.asked.append(namespace)
        if self.silent:
            self.silent -= 1
            raise Retry(0, "connection refused")
        allowed = self.looks[0]
        if namespace not in allowed:
            raise Forbidden(403, f"cannot list in {namespace}")

    async def sleep(self, _: float) -> None:
        if len(self.looks) > 1:
            self.looks.pop(0)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api({"a", "b"})
    monkeypatch.setattr(asyncio, "sleep", made.sleep)
    return made


def of(api: Api, *chosen: str) -> Places:
    return Places(api, chosen)  # type: ignore[arg-type]


async def test_all_of_the_cluster_is_not_asked_about(api: Api) -> None:
    everywhere = of(api)
    await everywhere.find()
    assert (everywhere.served, api.asked) == ((), [])


async def test_what_can_be_listed_is_served_in_the_order_chosen(api: Api) -> None:
    found = of(api, "b", "a")
    await found.find()
    assert found.served == ("b", "a")


async def test_what_cannot_is_left_aside_with_its_reason(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    found = of(api, "a", "gone", "b")
    await found.find()
    assert found.served == ("a", "b")
    (warning,) = caplog.records
    assert "Namespace gone is not served: cannot list in gone" in warning.message


async def test_it_waits_for_the_first_and_tells_once(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    api.looks = [set(), set(), {"a"}]
    found = of(api, "a")
    await found.find()
    assert found.served == ("a",)
    assert len(caplog.records) == 1


async def test_a_server_that_does_not_answer_leaves_nothing_aside(api: Api) -> None:
    api.silent = 3
    found = of(api, "a", "b")
    await found.find()
    assert found.served == ("a", "b")


async def test_it_ends_when_one_comes_back(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    api.looks = [{"a"}, {"a"}, {"a", "c"}]
    found = of(api, "a", "c")
    await found.find()
    api.silent = 1
    api.asked.clear()
    with caplog.at_level("INFO"):
        await found.until_more()
    assert set(api.asked) == {"c"}
    assert "Can be served again: c" in caplog.text
