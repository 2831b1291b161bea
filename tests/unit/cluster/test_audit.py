"""The record of who asked an API server for what, read for one user."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.cluster.api import ApiOnlyCluster

OURS = {"user": {"username": "system:serviceaccount:dsd-system:dsd-operator"}, "verb": "get"}
OTHERS = {"user": {"username": "admin"}, "verb": "get"}
NOBODY: dict[str, Any] = {"user": {}, "verb": "get", "responseStatus": {"code": 401}}


def test_events_of_one_user_are_found_among_those_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "audit.log"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in (NOBODY, OURS, OTHERS)) + '{"user": {"usern')
    monkeypatch.setattr(ApiOnlyCluster, "_running", SimpleNamespace(audit_log=log))
    assert ApiOnlyCluster().audit("system:serviceaccount:dsd-system:dsd-operator") == [OURS]
