"""The shape of the repository: what must be there, what must never be, and how large a module may grow."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tools.cluster.paths import REPOSITORY

_CODE = ("operator", "runtime", "kubectl", "tools", "tests", "bench")
_MAX_LINES = 500


def _modules() -> list[Path]:
    return [path for folder in _CODE for path in (REPOSITORY / folder).rglob("*.py")]


def _targets() -> dict[str, str]:
    """The Makefile's targets with a description, each with its prerequisites."""
    text = (REPOSITORY / "Makefile").read_text()
    return {name: needs.strip() for name, needs in re.findall(r"^([a-z0-9-]+):(.*?)## ", text, re.MULTILINE)}


def test_operator_is_no_package() -> None:
    """With an `__init__.py` it would shadow the standard library's `operator` wherever the root is on the path."""
    assert not (REPOSITORY / "operator" / "__init__.py").exists()


def test_the_license_is_apache() -> None:
    text = (REPOSITORY / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert text.rstrip().endswith("limitations under the License.")


def test_modules_stay_small() -> None:
    modules = _modules()
    assert len(modules) > 50
    too_long = {str(m.relative_to(REPOSITORY)): len(m.read_text().splitlines()) for m in modules}
    assert {name: lines for name, lines in too_long.items() if lines > _MAX_LINES} == {}


def test_every_module_says_its_role() -> None:
    silent = [m for m in _modules() if m.read_text().strip() and not m.read_text().startswith(('"""', 'r"""'))]
    assert silent == []


def test_the_commands_of_the_readme_exist() -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z0-9-]*)", (REPOSITORY / "README.md").read_text()))
    assert {"demo", "demo-down", "test"} <= named
    assert named <= _targets().keys()


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs"])
def test_the_commands_of_the_documentation_exist(document: str) -> None:
    path = REPOSITORY / document
    pages = [path] if path.is_file() else list(path.rglob("*.md"))
    named = {word for page in pages for word in re.findall(r"`make ([a-z][a-z0-9-]*)", page.read_text())}
    assert named <= _targets().keys()


def test_every_target_is_described() -> None:
    text = (REPOSITORY / "Makefile").read_text()
    phony = {name for line in re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE) for name in line.split()}
    assert phony == _targets().keys()


def test_make_test_runs_everything() -> None:
    assert set(_targets()["test"].split()) == {"test-first", "test-beside", "test-e2e"}
    recipes = subprocess.run(
        ["make", "--dry-run", "test-first", "test-beside"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    assert "tools.side_by_side lint check-generated test-unit" in recipes
    assert "tools.side_by_side test-engine-then-faults test-integration" in recipes
    assert _targets()["test-engine-then-faults"].split() == ["test-engine", "test-faults"]


def test_no_test_on_an_api_server_falls_between_the_stages() -> None:
    recipes = subprocess.run(
        ["make", "--dry-run", "test-integration", "test-faults"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    left_out = set(re.findall(r"--ignore=(\S+)", recipes))
    taken = [line for line in recipes.splitlines() if "--ignore" not in line and "integration" in line]
    assert left_out
    assert [set(re.findall(r"tests/\S+", line)) for line in taken] == [left_out]


def test_lint_runs_every_linter() -> None:
    recipe = subprocess.run(
        ["make", "--dry-run", "lint"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    assert "ruff check" in recipe
    assert "mypy" in recipe
    assert "lint-imports" in recipe


def test_ci_runs_make_test() -> None:
    script = REPOSITORY / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()


def test_links_between_documents_lead_somewhere() -> None:
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())]
    assert len(links) > 10
    assert [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()] == []
