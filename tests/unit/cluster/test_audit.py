"""The record of who asked an API server for what, read for one user."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.cluster import components, control_plane
from tools.cluster.api import ApiOnlyCluster

USER = "system:serviceaccount:dsd-system:dsd-operator"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The audit log of a control plane of which nothing else runs."""
    path = tmp_path / "audit.log"
    monkeypatch.setattr(ApiOnlyCluster, "_running", SimpleNamespace(audit_log=path, layout=None))
    return path


def event(username: str | None = USER) -> dict[str, Any]:
    """A request that is received now."""
    user = {} if username is None else {"username": username}
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return {"user": user, "verb": "get", "requestReceivedTimestamp": now}


def write(log: Path, *events: dict[str, Any]) -> None:
    with log.open("a") as lines:
        lines.writelines(f"{json.dumps(event)}\n" for event in events)


def test_events_of_one_user_are_found_among_those_of_nobody(log: Path) -> None:
    ours = event()
    write(log, event(None), ours, event("admin"))
    with log.open("a") as lines:
        lines.write('{"user": {"usern')  # the line that is just being written
    assert ApiOnlyCluster().audit(USER) == [ours]


def test_what_an_api_server_refuses_while_it_starts_says_nothing_about_rights(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_plane, "apiserver", lambda _: "apiserver")
    monkeypatch.setattr(control_plane, "controller_manager", lambda _: "controllers")
    answered: dict[str, dict[str, Any]] = {}

    def start(_: object, component: str) -> None:
        answered[component] = event()
        write(log, answered[component])

    monkeypatch.setattr(components, "start", start)
    cluster = ApiOnlyCluster()
    before = event()
    write(log, before)
    for _ in range(2):
        cluster.start_apiserver()
    after = event()
    write(log, after)
    kept = cluster.audit(USER)
    assert kept[0] == before
    assert kept[-1] == after
    assert len(kept) == 4, "those while the controllers start count again"
    assert answered["controllers"] in kept
    assert answered["apiserver"] not in kept
