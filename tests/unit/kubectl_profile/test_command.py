"""What `profile` checks before it changes anything, and when it applies what it found. The API server is a stand-in."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from dsd_runtime.schedule import Ranges, from_triples
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import Failure
from kubectl_dsd.profile.command import profile
from kubectl_dsd.profile.measurement import apply
from kubectl_dsd.profile.schedules import Schedules
from kubectl_dsd.wanted import schedule_of
from tests.unit.kubectl_profile.test_report import results

RESOURCE: Final[Json] = {
    "metadata": {"namespace": "team", "name": "demo", "uid": "1", "generation": 4, "resourceVersion": "9"},
    "spec": {"schedule": [{"startBatchSize": 1, "endBatchSize": 64, "numSpeculativeTokens": 3}]},
    "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 4}]},
}
POD: Final[Json] = {
    "metadata": {"namespace": "team", "name": "demo-a", "uid": "2"},
    "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
}
STATUS: Final[Json] = {
    "mode": "on",
    "envelope": {"method": "ngram", "maxNumSeqs": 16, "preparedTokens": [0, 1, 4], "allowedTokens": [0, 1, 2, 3, 4]},
    "engines": [{"engine": 0}],
}


class Server(Cluster):
    """What the API server says."""

    def __init__(self) -> None:
        self.resource, self.present, self.status = deepcopy(RESOURCE), [deepcopy(POD)], deepcopy(STATUS)

    def deployment(self, name: str) -> Json:  # noqa: ARG002 - there is one
        """The resource."""
        return self.resource

    def pods(self, deployment: Mapping[str, Any]) -> list[Json]:  # noqa: ARG002 - there is one
        """Its pods."""
        return self.present

    def pod_get(self, namespace: str, pod: str, path: str, port: int = 0, timeout: float = 0) -> bytes:  # noqa: ARG002
        """An engine's status."""
        return json.dumps(self.status).encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """The command's cluster."""
    made = Server()
    monkeypatch.setattr(Cluster, "connect", lambda _: made)
    return made


def run(*arguments: str) -> Result:
    """The command; nothing here gets as far as a measurement."""
    return CliRunner().invoke(profile, ["demo", *arguments])


def plan(*arguments: str) -> dict[str, Any]:
    """The plan as a program gets it."""
    done = run("--dry-run", "-o", "json", *arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("server")
def test_the_plan_is_what_the_engine_prepared_and_what_the_schedule_uses() -> None:
    found = plan()

    assert found["numSpeculativeTokens"] == [0, 1, 3, 4]
    assert found["concurrencies"] == [1, 2, 4, 8, 16]
    assert found["estimatedSeconds"] == 10 + 5 * 4 * 5 * (8 + 2.5)


@pytest.mark.usefixtures("server")
def test_the_plan_for_people_says_what_and_how_long() -> None:
    done = run("--dry-run", "--k", "0,2", "--concurrency", "4", "--rounds", "1")

    assert "team/demo" in done.stdout
    assert "2 of 8 s" in done.stdout
    assert "K=2 is not in drafter.preparedTokens" in done.stderr


def test_a_deployment_that_is_not_ready_is_refused(server: Server) -> None:
    server.resource["status"]["conditions"][0] |= {"status": "False", "reason": "RollingOut", "message": "a pod starts"}

    done = run("--dry-run")

    assert done.exit_code == 1
    assert "not Ready (RollingOut: a pod starts)" in done.stderr
    assert "kubectl dsd explain demo -n team" in done.stderr


def test_a_spec_that_the_operator_has_not_seen_is_refused(server: Server) -> None:
    server.resource["metadata"]["generation"] = 5

    assert "has not looked at its newest spec" in run("--dry-run").stderr


def test_no_pods_are_refused(server: Server) -> None:
    server.present = []

    assert "has no pods" in run("--dry-run").stderr


def test_a_pod_that_is_not_ready_is_refused(server: Server) -> None:
    server.present[0]["status"]["conditions"][0]["status"] = "False"

    assert "not every pod of demo is ready: demo-a" in run("--dry-run").stderr


def test_an_engine_that_takes_no_schedule_is_refused(server: Server) -> None:
    server.status = {"mode": "off", "lastError": {"message": "vLLM 9 is not known"}}

    assert "takes a schedule at its start only: vLLM 9 is not known" in run("--dry-run").stderr


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--k", "9"), 1, "cannot use that K"),
        (("--k", "a"), 2, "no list of numbers"),
        (("--concurrency", "17"), 1, "more than the engine runs at once (16)"),
        (("--plot", "x.png"), 2, "ends in .svg"),
        (("--prompts", "/does/not/exist"), 1, "cannot be read"),
        (("--rounds", "0"), 2, "--rounds"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], code: int, words: str) -> None:
    done = run("--dry-run", *arguments)

    assert done.exit_code == code
    assert words in done.stderr


class Kept(Schedules):
    """Remembers what was applied."""

    def __init__(self) -> None:
        self.kept: list[Ranges] = []

    def keep(self, ranges: Ranges) -> None:
        """Remember it."""
        self.kept.append(ranges)

    def undo_command(self) -> str:
        """Something."""
        return "undo"


def test_a_better_schedule_is_applied() -> None:
    schedules, found = Kept(), results()

    said = apply(found, schedules, force=False)

    assert schedules.kept == [found.best.ranges]
    assert said.startswith("applied: against the schedule in force: +29.4 %")
    assert "undo" in said


def test_the_schedule_in_force_is_not_applied_again() -> None:
    schedules = Kept()
    best = {"spec": {"schedule": results().best.data()["ranges"]}}

    said = apply(results(present=schedule_of(best).ranges), schedules, force=False)

    assert schedules.kept == []
    assert "says the same already" in said


@pytest.mark.parametrize("force", [False, True])
def test_a_gain_that_is_not_known_is_applied_by_force_only(force: bool) -> None:
    schedules = Kept()

    said = apply(results(rounds=2), schedules, force=force)

    assert bool(schedules.kept) == force
    assert said.startswith("applied") == force


def test_a_gain_within_its_interval_is_not_applied() -> None:
    schedules = Kept()
    other = from_triples([(1, 4, 3), (5, 64, 3)])

    said = apply(results(present=other, noise=0.4), schedules, force=False)

    assert schedules.kept == []
    assert "no gain beyond the interval" in said


def test_failures_are_plain(server: Server) -> None:
    server.resource["spec"]["schedule"] = [{"startBatchSize": "x"}]

    done = run("--dry-run")

    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit | Failure)
