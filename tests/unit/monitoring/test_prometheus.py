"""The Prometheus of the tests: it scrapes, it answers to the digit, and it is gone afterwards."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.monitoring.exposition import showing
from tools.cluster.errors import ClusterError
from tools.cluster.waiting import poll
from tools.monitoring.query import QueryError
from tools.monitoring.server import history, running, scraping, static

pytestmark = pytest.mark.integration  # Prometheus is fetched once


@pytest.fixture
def page() -> Iterator[str]:
    """HOST:PORT of a page with one metric."""
    with showing('made_by_hand{colour="red"} 42\n') as address:
        yield address


def test_scrapes_what_it_is_told(page: str, tmp_path: Path) -> None:
    job = static("hand", page, labels={"pod": "a"})
    with running(tmp_path, scraping([job])) as server:
        assert poll(lambda: bool(server.instant("made_by_hand")), 60)
        (series,) = server.instant("made_by_hand")
        (target,) = server.targets()
    expected = {"__name__": "made_by_hand", "colour": "red", "pod": "a", "job": "hand", "instance": page}
    assert series.labels == expected
    assert series.value == 42
    assert target["health"] == "up"
    assert not subprocess.run(["pgrep", "-f", f"--config.file={tmp_path}"], capture_output=True).stdout


def test_answers_from_a_history_made_by_hand(tmp_path: Path) -> None:
    start = 1_700_000_000
    lines = [f"done_total {15 * n} {start + 15 * n}" for n in range(41)]
    history(tmp_path, "\n".join(["# TYPE done counter", *lines, "# EOF", ""]))
    with running(tmp_path, scraping([])) as server:
        assert server.value("rate(done_total[5m])", at=start + 600) == pytest.approx(1)
        (series,) = server.range("done_total", start, start + 60, 30)
        assert series.points == ((start, 0), (start + 30, 30), (start + 60, 60))
        with pytest.raises(QueryError, match="parse error"):
            server.instant("rate(done_total[5m]")
        with pytest.raises(ValueError, match="0 series"):
            server.value("undone_total")


def test_a_wrong_configuration_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="scrape_confugs"), running(tmp_path, {"scrape_confugs": []}):
        pass
