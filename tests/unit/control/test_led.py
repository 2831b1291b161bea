"""A child that leads clients to another: the order of the two, whatever fails."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from dsd_operator.reconcile import children
from dsd_operator.reconcile.apply import Report, failed
from dsd_operator.reconcile.memory import Memory
from dsd_operator.render import extras
from tests.unit.resources import CONTEXT, resource

ROUTE: Final[dict[str, Any]] = {"enabled": True, "parentRefs": [{"name": "public"}]}
POOL: Final[dict[str, Any]] = {"enabled": True, "endpointPicker": {"name": "picker"}}


class Steps:
    """Stands for `optional`: what was done, in order; bringing some kinds fails."""

    def __init__(self, failing: set[str]) -> None:
        self.failing = failing
        self.done: list[str] = []

    async def bring(self, _client: object, manifest: Mapping[str, Any], _memory: Memory) -> Report:
        self.done.append(f"bring {manifest['kind']}")
        return failed(manifest, "refused") if manifest["kind"] in self.failing else Report()

    async def wait(self, _client: object, manifest: Mapping[str, Any], kind: str) -> Report:
        self.done.append(f"leave {manifest['kind']} for {kind}")
        return Report()

    async def drop(self, _client: object, identity: Mapping[str, Any], _memory: Memory) -> Report:
        self.done.append(f"drop {identity['kind']}")
        return Report()


async def steps(
    monkeypatch: pytest.MonkeyPatch, route: bool, pool: bool, failing: set[str], late: set[str] | None = None
) -> list[str]:
    """What is done about route and pool; `late` failed in a pass before and is not tried in this one."""
    gateway = {name: wanted for name, wanted, on in (("httpRoute", ROUTE, route), ("inferencePool", POOL, pool)) if on}
    asked = resource({"gateway": gateway, "podDisruptionBudget": {"enabled": False}})
    made = Steps(failing)
    monkeypatch.setattr(children, "optional", made)
    manifests = [m for m in extras.wanted(asked, CONTEXT) if m["kind"] not in (late or set())]
    nobody: Any = None
    await children.bring_beside(nobody, manifests, Memory("u"), extras.unwanted(asked))
    return [step for step in made.done if "InferencePool" in step or "HTTPRoute" in step]


@pytest.mark.parametrize(
    ("failing", "late", "done"),
    [
        (set(), set(), ["bring InferencePool", "bring HTTPRoute"]),
        ({"InferencePool"}, set(), ["bring InferencePool", "leave HTTPRoute for InferencePool"]),
        (set(), {"InferencePool"}, ["leave HTTPRoute for InferencePool"]),
    ],
    ids=["in-order", "refused", "refused-in-the-pass-before"],
)
async def test_a_route_follows_its_pool(
    monkeypatch: pytest.MonkeyPatch, failing: set[str], late: set[str], done: list[str]
) -> None:
    assert await steps(monkeypatch, route=True, pool=True, failing=failing, late=late) == done


@pytest.mark.parametrize(
    ("failing", "late", "done"),
    [
        (set(), set(), ["bring HTTPRoute", "drop InferencePool"]),
        ({"HTTPRoute"}, set(), ["bring HTTPRoute"]),
        (set(), {"HTTPRoute"}, []),
    ],
    ids=["in-order", "refused", "refused-in-the-pass-before"],
)
async def test_a_pool_goes_when_no_route_leads_to_it_any_more(
    monkeypatch: pytest.MonkeyPatch, failing: set[str], late: set[str], done: list[str]
) -> None:
    assert await steps(monkeypatch, route=True, pool=False, failing=failing, late=late) == done


async def test_each_goes_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await steps(monkeypatch, route=False, pool=True, failing=set()) == ["bring InferencePool", "drop HTTPRoute"]
    both = await steps(monkeypatch, route=False, pool=False, failing=set())
    assert sorted(both) == ["drop HTTPRoute", "drop InferencePool"]
