"""What the operator writes into the status is what the CRD declares: the API server drops all else without a word."""

from collections.abc import Iterator
from typing import Any

from dsd_operator.api import crdgen
from dsd_operator.api.status import Status
from dsd_operator.status import summarize
from dsd_operator.status.observed import Observed, Outcome, PushResult, PushState
from tests.unit.resources import resource


def _undeclared(value: Any, schema: dict[str, Any], path: str = "status") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            field = schema.get("properties", {}).get(key)
            if field is None:
                yield f"{path}.{key}"
            else:
                yield from _undeclared(item, field, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _undeclared(item, schema.get("items", {}), f"{path}[]")


def test_every_field_of_a_summary_is_declared() -> None:
    pod = {"metadata": {"name": "demo-x"}, "status": {"phase": "Running"}}
    observed = Observed((), (pod,), None)
    outcome = Outcome(None, "0" * 16, pushes=(PushResult("demo-x", PushState.UNREACHABLE, "no route"),))
    status = summarize.summarize(resource({}), observed, outcome, "2026-01-01T00:00:00Z")
    assert status["schedule"]["outOfSync"]
    assert list(_undeclared(status, crdgen.structural(Status))) == []
