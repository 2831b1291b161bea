"""Options of the whole test suite."""

import signal
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

# How fast a machine draws examples is no property of the code: no deadline, no complaint about slowness.
settings.register_profile("dsd", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("dsd")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`: write what is rendered now into tests/golden/manifests, to be reviewed as a diff."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden manifests instead of comparing")


def _end(number: int, _: FrameType | None) -> None:
    pytest.exit(f"ended by {signal.Signals(number).name}", returncode=128 + number)


def pytest_configure() -> None:
    """A run that is cancelled ends what it started: by default SIGTERM would skip the fixtures' ends, and engines and
    API servers would stay."""
    signal.signal(signal.SIGTERM, _end)
