"""Licences: what is allowed, that each one of ours is known, and that the page of notices follows the locks."""

import pytest
from packaging.utils import canonicalize_name

from tools.release import checks, licences, notices
from tools.release.checks import CheckError, Release
from tools.release.projects import KUBECTL, OPERATOR, RUNTIME


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        ("MIT", True),
        ("Apache-2.0 AND MIT", True),
        ("Apache-2.0 AND GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only OR LGPL-2.1-only", False),
        ("", False),
    ],
)
def test_what_is_allowed(expression: str, verdict: bool) -> None:
    assert licences.allowed(expression, licences.SHIPPED) is verdict


def test_all_dependencies_are_allowed(release: Release) -> None:
    assert checks.dependency_licences(release)


@pytest.mark.parametrize("licence", ["AGPL-3.0-only", ""])
def test_a_dependency_that_is_not_is_named(release: Release, monkeypatch: pytest.MonkeyPatch, licence: str) -> None:
    monkeypatch.setitem(licences._STATED, "kopf", licence)
    with pytest.raises(CheckError, match=f"kopf: {licence or 'unknown'}$"):
        checks.dependency_licences(release)


def test_what_only_the_tests_use_may_not_be_shipped(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(licences._STATED, "pydantic", "LicenseRef-NVIDIA-Proprietary")
    with pytest.raises(CheckError, match="pydantic: "):
        checks.dependency_licences(release)


def test_nothing_is_stated_that_nobody_needs() -> None:
    pins = notices.lock_pins("dev")
    assert [name for name in licences._STATED if canonicalize_name(name) not in pins] == []


def test_the_page_of_notices_is_that_of_the_locks(release: Release) -> None:
    assert checks.third_party_page(release) == "THIRD-PARTY.md"
    rows = notices.TARGET.read_text()
    for name, version in notices.lock_pins("operator").items():
        assert f"| {name} | {version} |" in rows


def test_a_page_out_of_date_is_said(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = notices.lock_pins
    monkeypatch.setattr(notices, "lock_pins", lambda name: pins(name) | {"kopf": "0.0.1"})
    with pytest.raises(CheckError, match=r"tools\.release\.notices"):
        checks.third_party_page(release)


def test_a_wheel_needs_what_its_dependencies_need() -> None:
    runtime, operator, kubectl = (notices.dependencies(project) for project in (RUNTIME, OPERATOR, KUBECTL))
    assert {"pyjwt", "cryptography", "httpcore"} <= runtime.keys()  # [crypto] and what httpx needs
    assert "vllm" not in runtime  # an extra
    assert runtime.keys() | {"kopf"} <= operator.keys()
    assert operator.keys() | {"plotext"} <= kubectl.keys()
    assert not {"dsd-runtime", "dsd-operator"} & kubectl.keys()
