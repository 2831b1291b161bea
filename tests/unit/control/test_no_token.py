"""The API server gives the operator no token for a pod: said as its own trouble, not as the pod's."""

from typing import Any

from dsd_operator.cluster.errors import Forbidden
from dsd_operator.reconcile.delivery import Courier, Target
from dsd_operator.reconcile.queue import Key
from dsd_operator.status.observed import PushState
from dsd_operator.status.schedule import NO_TOKEN
from dsd_runtime.protocol import Revision
from dsd_runtime.schedule import from_triples

TARGET = Target(Key("team-a", "demo"), "audience", Revision(owner="o", number=2), from_triples([(1, 8, 1)]))


class NoTokens:
    """An operator whose role lacks serviceaccounts/token."""

    async def get(self, _: str) -> str:
        raise Forbidden(403, "serviceaccounts dsd-operator is forbidden")


async def test_the_api_servers_refusal_is_named() -> None:
    nobody: Any = None
    tokens: Any = NoTokens()
    courier = Courier(nobody, tokens, nobody)
    result = (await courier.deliver(TARGET, "demo-1", "192.0.2.1", Revision(owner="o", number=1))).result
    assert result.state is PushState.UNAUTHORIZED
    assert result.message == f"{NO_TOKEN}: serviceaccounts dsd-operator is forbidden"
