"""The engine's restarts count for `top` and `profile`; a sidecar's do not."""

from collections.abc import Callable
from typing import Any

import pytest

from kubectl_dsd.profile import engines
from kubectl_dsd.top import samples


def pod(engine: int, proxy: int) -> dict[str, Any]:
    states = [{"name": "proxy", "restartCount": proxy}, {"name": "engine", "restartCount": engine}]
    return {"metadata": {"uid": "u"}, "status": {"containerStatuses": states}}


@pytest.mark.parametrize("identity", [engines.identity, samples.identity])
def test_a_sidecar_that_restarts_makes_no_other_engine(identity: Callable[[dict[str, Any]], Any]) -> None:
    assert identity(pod(engine=1, proxy=0)) == identity(pod(engine=1, proxy=7))
    assert identity(pod(engine=1, proxy=0)) != identity(pod(engine=2, proxy=0))
