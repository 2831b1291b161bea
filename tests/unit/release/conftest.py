"""A release in a temporary folder, of which nothing is built until a check asks for it."""

from pathlib import Path

import pytest

from tools.release.checks import Release


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """Checks of the tree need no more than this."""
    return Release(tmp_path / "dist", tmp_path / "scratch", when=1_700_000_000)
