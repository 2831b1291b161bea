"""`kubectl dsd profile` and the schedule on a real API server with the real operator: set, acknowledged, put back."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_runtime.schedule import from_triples
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import ApiFailure, Failure
from kubectl_dsd.kubeconfig import Login, Target
from kubectl_dsd.profile.measurement import Outcome, restoring
from kubectl_dsd.profile.ownership import schedule_owners
from kubectl_dsd.profile.schedules import ChangedMeanwhile, Restored, Schedules
from tests.integration.world import FIRST, NAME, SECOND, World, ranges, spec
from tools.cluster.api import ApiOnlyCluster, kubectl
from tools.testbed.kube import Kube

WHOLE: Final = [(1, 256, 2)]

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def shared(
    kube: Kube, cluster: ApiOnlyCluster, operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A deployment with two engines, for all tests: nothing that they do to it lasts."""
    folder = tmp_path_factory.mktemp("profile")
    with World(kube, cluster.kubeconfig, operator_kubeconfig, "kubectl-profile", folder) as world:
        world.operator()
        world.create(replicas=2)
        world.engines(2)
        yield world


@pytest.fixture
def running(shared: World) -> World:
    """Its engines use the first schedule."""
    shared.create(replicas=2)
    shared.wait_schedule(2)
    return shared


@pytest.fixture
def client(running: World, cluster: ApiOnlyCluster) -> Cluster:
    """The command's own client, in its namespace."""
    return Cluster.connect(Target(str(cluster.kubeconfig), namespace=running.namespace))


def in_spec(world: World) -> list[dict[str, int]]:
    """The schedule that the resource asks for."""
    found: list[dict[str, int]] = world.resource()["spec"]["schedule"]
    return found


def test_a_schedule_is_set_once_every_engine_uses_it_and_put_back(running: World, client: Cluster) -> None:
    schedules = Schedules(client, client.deployment(NAME))

    resource = schedules.use(from_triples(WHOLE))

    assert resource["status"]["schedule"]["podsApplied"] == 2
    assert in_spec(running) == ranges(WHOLE)
    assert schedules.restore().done
    assert in_spec(running) == ranges(FIRST)
    assert schedules.restore().text == ""


def test_what_was_never_changed_is_not_put_back(running: World, client: Cluster) -> None:
    schedules = Schedules(client, client.deployment(NAME))
    generation = running.resource()["metadata"]["generation"]

    assert schedules.restore().done
    assert running.resource()["metadata"]["generation"] == generation


def test_a_schedule_that_somebody_else_sets_stops_the_profile_and_stays(running: World, client: Cluster) -> None:
    schedules = Schedules(client, client.deployment(NAME))
    schedules.use(from_triples(WHOLE))

    running.schedule(SECOND)

    with pytest.raises(ChangedMeanwhile, match="changed meanwhile by"):
        schedules.use(from_triples([(1, 256, 1)]))
    restored = schedules.restore()
    assert restored.done
    assert "stays" in restored.text
    assert schedules.undo_command() in restored.text
    assert in_spec(running) == ranges(SECOND)


def test_who_puts_the_old_schedule_back_is_named(running: World, client: Cluster) -> None:
    schedules = Schedules(client, client.deployment(NAME))
    schedules.use(from_triples(WHOLE))

    running.schedule(FIRST)

    with pytest.raises(ChangedMeanwhile) as stopped:
        schedules.check()
    assert "in sync" in stopped.value.hint


def test_another_change_of_the_spec_stops_the_profile_and_the_schedule_comes_back(
    running: World, client: Cluster
) -> None:
    schedules = Schedules(client, client.deployment(NAME))
    schedules.use(from_triples(WHOLE))

    running.patch(rollout={"maxSurge": 1})

    with pytest.raises(ChangedMeanwhile, match="not its schedule"):
        schedules.check()
    assert schedules.restore().done
    assert in_spec(running) == ranges(FIRST)


def test_what_is_applied_stays(running: World, client: Cluster) -> None:
    schedules = Schedules(client, client.deployment(NAME))
    schedules.use(from_triples(WHOLE))

    schedules.keep(from_triples(SECOND))

    assert schedules.restore().text == ""
    assert in_spec(running) == ranges(SECOND)


def test_its_owners_own_the_schedule_again(running: World, client: Cluster) -> None:
    """Else the next server-side apply of the schedule's owner would end in a conflict with us."""
    before = owners(running)
    schedules = Schedules(client, client.deployment(NAME))

    schedules.use(from_triples(WHOLE))
    meanwhile = owners(running)
    schedules.restore()

    assert meanwhile == {("kubectl-dsd", "Update")}
    assert owners(running) == before
    assert ("dsd-testbed", "Apply") in before
    manifest = {**running.resource(), "spec": spec(SECOND, replicas=2), "status": None}
    manifest["metadata"] = {"name": NAME, "namespace": running.namespace}
    running.kubectl("apply", "--server-side", "--field-manager=dsd-testbed", "-f", "-", given=json.dumps(manifest))
    assert in_spec(running) == ranges(SECOND)


def owners(world: World) -> set[tuple[str, str]]:
    """(manager, operation) of those that own the schedule."""
    shown = world.kubectl("get", "dsd", NAME, "--show-managed-fields", "-o", "json")
    return {(entry["manager"], entry["operation"]) for entry in schedule_owners(json.loads(shown))}


class Late(Cluster):
    """Gives up on the changes of the schedule, which are still on their way: `arrive` is when the API server gets them.

    The network cannot be slowed down here for one request; what the API server does with a late one is its own doing.
    """

    def __init__(self, login: Login) -> None:
        super().__init__(login)
        self.on_their_way: list[Json] = []
        self.late = True

    def patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Not heard of in time."""
        if self.late and "spec" in body:
            self.on_their_way.append(dict(body))
            raise ApiFailure(0, "the API server does not answer in time")
        return super().patch(kind, namespace, name, body, dry_run=dry_run)

    def arrive(self) -> list[int]:
        """What the API server answers to each, 200 for a success."""
        found = []
        while self.on_their_way:
            try:
                super().patch("DSDDeployment", self.namespace, NAME, self.on_their_way.pop(0))
                found.append(200)
            except ApiFailure as failure:
                found.append(failure.status)
        return found


@pytest.fixture
def late(client: Cluster) -> Late:
    """Such a client."""
    return Late(client.login)


def given_up(late: Late) -> Schedules:
    """A profile whose change of the schedule nobody answered."""
    schedules = Schedules(late, late.deployment(NAME))
    with pytest.raises(ApiFailure, match="in time"):
        schedules.use(from_triples(WHOLE))
    late.late = False
    return schedules


def test_a_change_that_arrives_after_the_end_is_refused(running: World, late: Late) -> None:
    before = owners(running)
    schedules = given_up(late)

    restored = schedules.restore()

    assert (restored.done, restored.text) == (True, "the schedule is as it was before")
    assert late.arrive() == [409]
    assert in_spec(running) == ranges(FIRST)
    assert owners(running) == before
    assert not any("profile" in key for key in running.resource()["metadata"].get("annotations", {}))


def test_a_change_that_arrives_while_it_is_put_back_is_undone(
    running: World, late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look that finds the old schedule and the write that would shut the late change out."""
    schedules = given_up(late)
    get, answers = late.get, list[int]()

    def read(*arguments: str) -> Json | None:
        found = get(*arguments)
        answers.extend(late.arrive())
        return found

    monkeypatch.setattr(late, "get", read)
    assert schedules.restore().done
    assert answers == [200]
    assert in_spec(running) == ranges(FIRST)


def test_owners_come_back_after_a_failure_on_the_way(
    running: World, client: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = owners(running)
    schedules = Schedules(client, client.deployment(NAME))
    schedules.use(from_triples(WHOLE))
    patch, refused = client.patch, iter([True, False])

    def shaky(kind: str, namespace: str, name: str, body: Mapping[str, Any]) -> Json:
        if "managedFields" in body["metadata"] and next(refused):
            raise ApiFailure(0, "the API server does not answer in time")
        return patch(kind, namespace, name, body)

    monkeypatch.setattr(client, "patch", shaky)
    assert schedules.restore().done
    assert next(refused, "asked twice") == "asked twice"
    assert owners(running) == before


def test_owners_that_do_not_come_back_are_told(
    running: World, client: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules = Schedules(client, client.deployment(NAME))
    schedules.use(from_triples(WHOLE))
    patch = client.patch

    def away(kind: str, namespace: str, name: str, body: Mapping[str, Any]) -> Json:
        if "managedFields" in body["metadata"]:
            raise ApiFailure(0, "the API server does not answer in time")
        return patch(kind, namespace, name, body)

    monkeypatch.setattr(client, "patch", away)
    restored = schedules.restore(seconds=0.0)
    assert restored.done
    assert "the field manager kubectl-dsd stays an owner" in restored.text
    assert in_spec(running) == ranges(FIRST)


def fail() -> None:
    """What a request that breaks does."""
    raise Failure("the connection broke")


def twice() -> None:
    """An impatient person."""
    os.kill(os.getpid(), signal.SIGINT)
    pytest.fail("not interrupted")


@pytest.mark.parametrize(
    ("what", "number"),
    [(fail, None), (twice, signal.SIGINT), (lambda: os.kill(os.getpid(), signal.SIGTERM), signal.SIGTERM)],
    ids=["failure", "SIGINT", "SIGTERM"],
)
def test_however_it_ends_the_schedule_comes_back(
    running: World, client: Cluster, what: Callable[[], None], number: int | None
) -> None:
    schedules, outcome = Schedules(client, client.deployment(NAME)), Outcome()
    told: list[str] = []

    with restoring(schedules, outcome, told.append):
        schedules.use(from_triples(WHOLE))
        what()

    assert in_spec(running) == ranges(FIRST)
    assert outcome.signal == number
    assert (outcome.failure is None) == (number is not None)
    assert outcome.notes == ["the schedule is as it was before"]
    assert schedules.undo_command() in told[0]


def test_a_second_signal_does_not_end_what_puts_it_back(running: World, client: Cluster) -> None:
    outcome = Outcome()
    told: list[str] = []

    class Pressed(Schedules):
        """Ctrl-C is pressed again in the middle of putting it back."""

        def restore(self, seconds: float = 1.0) -> Restored:
            os.kill(os.getpid(), signal.SIGINT)
            return super().restore(seconds)

    schedules = Pressed(client, client.deployment(NAME))
    with restoring(schedules, outcome, told.append):
        schedules.use(from_triples(WHOLE))
        os.kill(os.getpid(), signal.SIGINT)

    assert in_spec(running) == ranges(FIRST)
    assert any("being put back" in text for text in told)


def test_a_restore_that_fails_says_how_to_do_it_by_hand(
    running: World, client: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server goes away; the real one cannot be stopped here, other tests need it."""
    schedules, outcome = Schedules(client, client.deployment(NAME)), Outcome()

    with restoring(schedules, outcome, lambda _: None, seconds=0.0):
        schedules.use(from_triples(WHOLE))

        def unreachable(*_: object, **__: object) -> None:
            raise ApiFailure(0, "the API server cannot be reached")

        monkeypatch.setattr(client, "get", unreachable)

    monkeypatch.undo()
    assert outcome.failure is not None
    command = schedules.undo_command()
    assert command in outcome.failure.message
    subprocess.run([str(kubectl()), *shlex.split(command)[1:]], check=True, capture_output=True)
    assert in_spec(running) == ranges(FIRST)
