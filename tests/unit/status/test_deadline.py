"""The progress deadline of engines over several nodes: from times in objects, as their resource's status tells it."""

from typing import Any, Final

import pytest

from dsd_operator.status.observed import Observed
from dsd_operator.status.summarize import summarize
from dsd_operator.status.workload import of_groups
from tests.unit.resources import manifests, resource
from tests.unit.status.cluster import outcome
from tests.unit.status.test_workload import PODS, leader, stateful_set, worker

STARTUP, DRAIN = 900, 300
LIMIT: Final = STARTUP + 600 + DRAIN + 35
SPEC: Final = {
    "engine.nodes": 2,
    "engine.tensorParallelSize": 2,
    "replicas": 2,
    "startup.timeoutSeconds": STARTUP,
    "rollout.drainTimeoutSeconds": DRAIN,
}


def at(seconds: int) -> str:
    """A time of the test's own clock."""
    return f"2030-01-0{1 + seconds // 86_400}T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


def became(made: dict[str, Any], ready: bool, seconds: int) -> dict[str, Any]:
    """A pod that is ready, or not, since then."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": at(seconds)}
    made["status"]["conditions"] = [condition]
    return made


class Course:
    """Passes over one resource; all that one hands to the next is the status."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        self.changed = 0

    def run(self, now: int, *pods: dict[str, Any], created: int = 0) -> tuple[str, str]:
        """Status and reason of Progressing after a pass at this time."""
        live = manifests(resource(SPEC))["LeaderWorkerSet"]
        entries = [{"time": at(self.changed)}, {"time": at(now), "subresource": "status"}]
        live["metadata"] |= {"creationTimestamp": at(created), "managedFields": entries}
        leaders = [pod for pod in pods if pod["metadata"]["name"].count("-") == 1]
        workers = [pod for pod in pods if pod not in leaders]
        mark = live["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]["annotations"][PODS]
        found = of_groups(live, stateful_set(mark), leaders, workers)
        asked = resource(SPEC, status=self.status)
        seen = Observed((found,), tuple(leaders), None, tuple(workers))
        self.status = summarize(asked, seen, outcome(), at(now))
        return self.told()

    def told(self) -> tuple[str, str]:
        """Progressing as it stands."""
        condition = next(c for c in self.status["conditions"] if c["type"] == "Progressing")
        return condition["status"], condition["reason"]


def starting(index: int) -> list[dict[str, Any]]:
    return [became(leader(index), False, 0), became(worker(index), False, 0)]


def serving(index: int, since: int) -> list[dict[str, Any]]:
    return [became(leader(index), True, since), became(worker(index), True, since)]


OVER: Final = ("False", "ProgressDeadlineExceeded")


@pytest.fixture
def course() -> Course:
    made = Course()
    assert made.run(0) == ("True", "RollingOut")
    return made


def test_it_is_over_when_nothing_got_on_for_that_long(course: Course) -> None:
    assert course.run(LIMIT, *starting(0), *starting(1))[0] == "True"
    assert course.run(LIMIT + 1, *starting(0), *starting(1)) == OVER


def test_it_stays_over_until_something_gets_on(course: Course) -> None:
    course.run(LIMIT + 1, *starting(0), *starting(1))
    assert course.run(LIMIT + 2, *starting(0), *starting(1)) == OVER
    assert course.run(5 * LIMIT, *starting(0), *starting(1)) == OVER
    got_on = 5 * LIMIT
    assert course.run(got_on + 1, *serving(0, got_on), *starting(1))[0] == "True"
    assert course.run(got_on + LIMIT + 1, *serving(0, got_on), *starting(1))[0] == "True"
    assert course.run(got_on + LIMIT + 2, *serving(0, got_on), *starting(1)) == OVER


def test_each_engine_that_gets_ready_has_the_next_one_start_its_time(course: Course) -> None:
    assert course.run(LIMIT + 1, *serving(0, 1000), *starting(1))[0] == "True"
    assert course.run(LIMIT + 1001, *serving(0, 1000), *starting(1)) == OVER


def test_a_group_that_crashes_and_is_made_anew_does_not_get_on(course: Course) -> None:
    for now in range(100, LIMIT, 100):
        anew = [became(leader(0), False, now), became(worker(0), True, now)]
        assert course.run(now, *([] if now % 200 else anew))[0] == "True"
    assert course.run(LIMIT + 1, *anew) == OVER


def test_a_change_of_what_is_wanted_begins_anew(course: Course) -> None:
    course.run(LIMIT + 1, *starting(0), *starting(1))
    course.changed = LIMIT + 5
    assert course.run(LIMIT + 6, *starting(0), *starting(1))[0] == "True"
    assert course.run(2 * LIMIT + 7, *starting(0), *starting(1)) == OVER


def test_what_is_done_has_none(course: Course) -> None:
    assert course.run(10, *serving(0, 5), *serving(1, 9)) == ("False", "RolledOut")
    late = 9 * LIMIT
    assert course.run(late, *serving(0, 5), *starting(1))[0] == "True", "an engine made anew begins now"
    assert course.run(late + LIMIT, *serving(0, 5), *starting(1))[0] == "True"
    assert course.run(late + LIMIT + 1, *serving(0, 5), *starting(1)) == OVER
    assert course.run(late + LIMIT + 9, *serving(0, 5), *serving(1, late + LIMIT + 8)) == ("False", "RolledOut")


def test_a_clock_that_was_set_back_ends_nothing(course: Course) -> None:
    course.changed = 1000
    for now in (1000, 10, 1000):
        assert course.run(now, *starting(0))[0] == "True"


def test_nothing_is_over_before_the_objects_have_times() -> None:
    """What a pass has planned, and the API server has not stored."""
    asked = resource(SPEC)
    found = of_groups(manifests(asked)["LeaderWorkerSet"], None, [], [])
    assert found.moved_at == ""
