"""The page of faults names tests that exist, and every test of faults."""

import re
from pathlib import Path
from typing import Final

from tools.cluster.paths import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "development" / "faults.md"
_NAMED: Final = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


def named() -> set[tuple[str, str]]:
    """File and function of each test on the page."""
    return set(_NAMED.findall(PAGE.read_text()))


def defined(path: Path) -> set[str]:
    """The test functions of a module."""
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))


def test_each_test_on_the_page_exists() -> None:
    found = named()
    assert len(found) > 25
    assert sorted(f"{path}::{name}" for path, name in found if name not in defined(REPOSITORY / path)) == []


def test_each_test_of_faults_is_on_the_page() -> None:
    folder = REPOSITORY / "tests" / "faults"
    modules = set(folder.glob("test_*.py")) - {folder / "test_trail.py"}  # about the oracles, not about a fault
    there = {(f"tests/faults/{path.name}", name) for path in modules for name in defined(path)}
    assert len(there) > 12
    assert sorted(f"{path}::{name}" for path, name in there - named()) == []


def test_each_case_of_a_request_is_on_the_page() -> None:
    cases = re.findall(r'^    "([\w-]+)": \(', (REPOSITORY / "tests/faults/test_requests.py").read_text(), re.MULTILINE)
    assert len(cases) > 15
    text = PAGE.read_text()
    assert [case for case in cases if f"[{case}]" not in text] == []
