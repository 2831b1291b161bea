"""End-to-end fixtures: the node, the images, the chart, tiny engines of every method, and the reference without DSD.

Starting an engine takes half a minute of CPU, so all engines of the session start together and the tests share them;
the test that removes them comes after these, and then the one that replaces the operator. A failed test prints the
state of the cluster.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final

import pytest

from tests.e2e.fleet import NAMESPACE, Fleet, Oracle
from tools.testbed import diagnostics
from tools.testbed.handle import Handle
from tools.testbed.install import Installation, install
from tools.testbed.site import site
from tools.testbed.waiting import TRANSIENT
from tools.testbed.workload import DRAFTERS

LAST: Final = ("test_removal", "test_upgrade")
SHARED_METHOD: Final = "ngram"
"""Tests that need any one engine, and those that restart it, share this one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that remove the engines run after all others, and then the one that needs a node without any."""
    items.sort(key=lambda item: LAST.index(item.path.stem) if _is_last(item) else -1)


def _is_last(item: pytest.Item) -> bool:
    return item.path.parent.name == "e2e" and item.path.stem in LAST


@pytest.fixture(scope="session")
def installation() -> Installation:
    """The chart, installed with the images of this checkout."""
    return install()


@pytest.fixture(scope="session")
def fleet(installation: Installation, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """The engines that the selected tests need, all starting at once; gone after the session."""
    fleet = Fleet(installation)
    with site(installation.kube, NAMESPACE):
        fleet.start(_methods_of(request.session.items))
        yield fleet


def _methods_of(items: Sequence[pytest.Item]) -> list[str]:
    named = {item.callspec.params.get("method") for item in items if hasattr(item, "callspec")}
    return [method for method in DRAFTERS if method in named | {SHARED_METHOD}]


@pytest.fixture(scope="session")
def oracle(fleet: Fleet) -> Oracle:
    """Greedy continuations of the engine without speculation."""
    return fleet.oracle()


@pytest.fixture
def shared(fleet: Fleet) -> Handle:
    """The engine that the tests share, Ready."""
    return fleet.ready(SHARED_METHOD)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the cluster's state to the report of a test that failed."""
    report = yield
    fleet = getattr(item, "funcargs", {}).get("fleet")
    if report.failed and isinstance(fleet, Fleet):
        report.sections.append(("cluster", _state(fleet)))
    return report


def _state(fleet: Fleet) -> str:
    try:
        return diagnostics.report(fleet.kube, [NAMESPACE, fleet.installation.namespace])
    except TRANSIENT as error:
        return f"the API server gave no answer: {error}"
