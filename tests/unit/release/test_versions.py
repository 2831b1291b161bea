"""One version everywhere: each place that says it is looked at, and a place that says another is named."""

import re
import shutil
from pathlib import Path

import pytest

from tools.cluster.paths import REPOSITORY
from tools.release import versions
from tools.release.projects import PROJECTS

_FILES = (
    "runtime/dsd_runtime/__init__.py", "operator/dsd_operator/__init__.py", "kubectl/kubectl_dsd/__init__.py",
    "charts/dsd-operator/Chart.yaml", "Dockerfile", "README.md", "CHANGELOG.md",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that say the version."""
    for name in _FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, tmp_path / name)
    return tmp_path


def test_this_checkout_agrees() -> None:
    assert versions.disagreeing() == []
    assert len(versions.places()) >= 11


@pytest.mark.parametrize("name", [name for name in _FILES if name != "CHANGELOG.md"])
def test_a_place_that_was_forgotten_is_named(tree: Path, name: str) -> None:
    text = (tree / name).read_text()
    assert versions.current() in text
    # "9.9.9" is found for all but the first project, which is the one that the others must equal.
    (tree / name).write_text(text.replace(versions.current(), "9.9.9"))
    found = versions.disagreeing(tree)
    assert found
    assert all("9.9.9" in line for line in found)


def test_a_version_that_is_gone_is_said(tree: Path) -> None:
    (tree / "kubectl/kubectl_dsd/__init__.py").write_text('"""No version."""\n')
    assert versions.disagreeing(tree) == [f"kubectl/kubectl_dsd/__init__.py says nothing, not {versions.current()}"]


def test_sections_of_the_changelog(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text(
        "# Changes\n\n## Unreleased (1.3.0)\n\n- New.\n\n## 1.2.0 (2026-12-01)\n\n- One.\n- Two.\n\n## 1.1.0 (soon)\n"
    )
    assert versions.changes("1.3.0", tree) == ("Unreleased (1.3.0)", ["- New."])
    assert versions.changes("1.2.0", tree) == ("1.2.0 (2026-12-01)", ["- One.", "- Two."])
    assert versions.changes("1.1.0", tree)[1] == []
    assert versions.changes("1.2", tree) == ("", [])
    assert [versions.dated(heading) for heading in ("1.2.0 (2026-12-01)", "Unreleased (1.3.0)", "1.1.0 (soon)")] == [
        True, False, False,
    ]  # fmt: skip


def test_the_changelog_has_this_version() -> None:
    heading, entries = versions.changes(versions.current())
    assert versions.current() in heading
    assert entries


def test_supported_versions_are_those_of_the_code() -> None:
    """docs/development/releasing.md names what pyproject.toml, chart and compat.py support."""
    page = (REPOSITORY / "docs/development/releasing.md").read_text()
    chart = (REPOSITORY / "charts/dsd-operator/Chart.yaml").read_text()
    (oldest,) = re.findall(r'^kubeVersion: ">=(\d+\.\d+)\.0-0"$', chart, re.MULTILINE)
    assert f"Kubernetes {oldest} or newer" in page
    from dsd_runtime.compat import SUPPORTED

    assert SUPPORTED
    assert [series for series in SUPPORTED if f"vLLM {series}.x" not in page] == []
    assert {p.pyproject()["requires-python"] for p in PROJECTS} == {">=3.11"}
    assert "Python 3.11 or newer" in page
