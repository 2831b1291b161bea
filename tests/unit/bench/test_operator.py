"""The operator's benchmark: what must hold follows from the rows, each number can fail, and the page shows them."""

from typing import Any

import pytest

from bench.operator_fleet import Requests
from bench.operator_phases import ALL_ANSWER, SLOW_AND_DEAD
from bench.operator_plan import Plan, schedules
from bench.operator_required import required_of
from bench.results import Result, environment, extent, path_of, read, spread
from bench.tables import tables
from dsd_runtime.schedule import schedule_hash

PLAN = Plan(deployments=1000, replicas=3, large=300, namespaces=20, changes=40, many=300)


def change(what: str, pods: str, samples: list[float]) -> dict[str, Any]:
    return {"change": what, "pods": pods, "changes": len(samples), "seconds": spread(samples), "samples": samples}


def data(
    resync: float = 20, writes: float = 0, peak: float = 200, faulty: float = 1, many: float = 2
) -> list[dict[str, Any]]:
    zero = extent([7000.0])
    return [
        {"start": "resync", "seconds": extent([12, resync]), "samples": [12, resync]},
        {"requests per": "full resync", "reads": zero, "writes": extent([0, writes])},
        change("one of 300 pods", ALL_ANSWER, [0.9, 1.0, 1.1]),
        change("one of 300 pods", SLOW_AND_DEAD, [faulty, faulty, faulty]),
        change("300 at once", ALL_ANSWER, [1, 2, 3]),
        change("300 at once", SLOW_AND_DEAD, [1, many, 3]),
        {"memory": "peak", "megabytes": extent([peak])},
    ]


def misses(**numbers: float) -> int:
    return sum(not entry.met for entry in required_of(data(**numbers)))


def test_a_good_run_meets_everything() -> None:
    assert misses() == 0
    assert len(required_of(data())) == 7


@pytest.mark.parametrize(
    ("numbers", "missed"),
    [
        ({"resync": 61}, 1),
        ({"writes": 1}, 1),
        ({"peak": 301}, 1),
        ({"faulty": 1.5}, 1),
        ({"faulty": 3.5}, 2),
        ({"many": 2.9}, 1),
    ],
)
def test_each_number_can_fail(numbers: dict[str, float], missed: int) -> None:
    assert misses(**numbers) == missed


def test_an_idle_hour_is_six_resyncs_and_what_the_watches_cost() -> None:
    hour = PLAN.idle_hour(Requests({"GET": 7000.0, "PATCH": 0.0}, 1000))
    assert hour.writes == 0
    assert 0 < hour.total - 6 * 7000 < 200
    assert Requests({"GET": 5.0, "POST": 2.0}, 3) - Requests({"GET": 1.0}, 1) == Requests({"GET": 4.0, "POST": 2.0}, 2)


def test_no_two_changes_in_a_row_are_alike() -> None:
    hashes = [schedule_hash(s) for series in (0, 1, 2) for s, _ in zip(schedules(series), range(150), strict=False)]
    assert len(set(hashes)) == len(hashes)


def test_the_names_are_spread_over_the_namespaces() -> None:
    assert len(set(PLAN.names)) == 1000
    assert len({place for place, _ in PLAN.names}) == 20


def test_the_page_has_tables() -> None:
    result = Result(environment=environment({}), method=PLAN.method, data=tuple(data()), required=required_of(data()))
    assert any("one slow, one dead" in line for line in tables(result.data))


@pytest.mark.skipif(not path_of("operator").exists(), reason="make bench-operator has not been run yet")
def test_the_stored_numbers_follow_from_the_stored_rows() -> None:
    stored = read("operator")
    assert required_of(stored.data) == stored.required
