"""Options of the whole test suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`: write what is rendered now into tests/golden/manifests, to be reviewed as a diff."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden manifests instead of comparing")
