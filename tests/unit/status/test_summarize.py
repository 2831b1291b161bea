"""From what a pass saw to the status that users read."""

import re
from typing import Any

import pytest

from dsd_operator.status.cache import ExistingClaim, claim_notes
from dsd_operator.status.observed import ApplyFailure, Observed, Outcome, PushState
from dsd_operator.status.summarize import summarize, transitions
from dsd_runtime.schedule import Problem
from tests.states import named
from tests.unit.resources import resource
from tests.unit.status.cluster import HASH, NOW, answer, deployment, observed, outcome, pod, push, waiting

DEADLINE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
QUOTA = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: gpus"}
SERVING = observed(deployment(), [pod()])
ALL_WELL = outcome([push(status=answer())])


def status(seen: Observed, done: Outcome, **changes: Any) -> dict[str, Any]:
    return summarize(resource(changes), seen, done, NOW)


def conditions(seen: Observed, done: Outcome, **changes: Any) -> dict[str, dict[str, Any]]:
    return {condition["type"]: condition for condition in status(seen, done, **changes)["conditions"]}


def states(seen: Observed, done: Outcome, **changes: Any) -> dict[str, tuple[str, str]]:
    return {kind: (c["status"], c["reason"]) for kind, c in conditions(seen, done, **changes).items()}


def test_all_is_well() -> None:
    made = status(SERVING, ALL_WELL)
    assert {c["type"]: (c["status"], c["reason"]) for c in made.pop("conditions")} == {
        "Available": ("True", "Available"),
        "Progressing": ("False", "RolledOut"),
        "ScheduleApplied": ("True", "Applied"),
        "Ready": ("True", "Ready"),
    }
    assert made == {
        "observedGeneration": 4,
        "replicas": 1,
        "readyReplicas": 1,
        "updatedReplicas": 1,
        "selector": "app.kubernetes.io/name=dsd-engine,dsd-operator.io/deployment=demo",
        "url": "http://demo.team-a.svc:8000",
        "ready": "1/1",
        "schedule": {
            "observedGeneration": 4,
            "hash": HASH,
            "applied": "1/1",
            "podsApplied": 1,
            "podsUnknown": 0,
            "podsTotal": 1,
            "outOfSync": [],
        },
    }


def test_a_pod_that_is_not_ready_serves_nobody_whatever_its_controller_still_counts() -> None:
    """The controller may be late or away, and the kubelet's word is what this very pass has read."""
    done = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
    engine = {"name": "engine", "ready": False, "started": True, "state": {"running": {}}}
    lost = pod("demo-2", ready=False, spec={"nodeName": "n1"}, containerStatuses=[engine])
    seen = observed(deployment(2, 2, 2, conditions=[done]), [pod(), lost])
    made = status(seen, outcome([push(status=answer())]), replicas=2)
    assert (made["ready"], made["readyReplicas"]) == ("1/2", 1)
    found = {c["type"]: (c["status"], c["reason"]) for c in made["conditions"]}
    assert found["Available"] == ("True", "Available")
    assert found["Progressing"] == found["Ready"] == ("False", "Degraded")


@pytest.mark.parametrize(
    ("ready", "replicas", "words"),
    [
        (4, 3, "3 of 3 pods serve, and 1 more"),
        (3, 1, "1 of 1 pods serve, and 2 more"),
        (1, 0, "scaled to zero: 1 pods still serve"),
        (2, 3, "2 of 3 pods serve"),
    ],
)
def test_pods_beyond_those_that_are_wanted(ready: int, replicas: int, words: str) -> None:
    """While a surge, or pods that are to go, serve too."""
    seen = observed(deployment(ready, 1, ready), [pod(f"demo-{number}") for number in range(ready)])
    assert conditions(seen, outcome(), replicas=replicas)["Available"]["message"] == words
    assert replicas == 0 or re.search(named("updating while serving").available.says, words)


def test_a_second_pass_changes_nothing() -> None:
    first = status(SERVING, ALL_WELL)
    again = summarize(resource(status=first), SERVING, ALL_WELL, "2031-01-01T00:00:00Z")
    assert again == first


def test_nothing_is_there_yet() -> None:
    assert states(observed(None), outcome()) == {
        "Available": ("False", "NoPodsReady"),
        "Progressing": ("True", "Creating"),
        "ScheduleApplied": ("Unknown", "PodNotReady"),
        "Ready": ("False", "Creating"),
    }


def starting(node: str = "n1", name: str = "demo-1", **engine: Any) -> dict[str, Any]:
    """A pod on its way."""
    return {**pod(name, ready=False, containerStatuses=[{"name": "engine", **engine}]), "spec": {"nodeName": node}}


RUNNING: dict[str, Any] = {"state": {"running": {}}}
SETTLED = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}


@pytest.mark.parametrize(
    ("late", "reason"),
    [(starting(""), "Pending"), (starting(), "ContainerCreating"), (starting(**RUNNING), "Starting")],
)
def test_on_the_way(late: dict[str, Any], reason: str) -> None:
    seen = observed(deployment(ready=0), [late])
    assert states(seen, outcome([push(state=PushState.NOT_READY)])) == {
        "Available": ("False", "NoPodsReady"),
        "Progressing": ("True", reason),
        "ScheduleApplied": ("Unknown", "PodNotReady"),
        "Ready": ("False", reason),
    }


def test_the_pod_that_has_come_least_far_is_told() -> None:
    pods = [starting("", "demo-3"), starting(name="demo-2"), starting("", "demo-1"), pod("demo-0")]
    found = conditions(observed(deployment(4, 4, 1), pods), outcome(), replicas=4)["Progressing"]
    assert found["reason"] == "Pending"
    assert found["message"] == "4 of 4 pods are up to date, 1 ready; pod demo-1 (and 1 more pods): waits for a node"


@pytest.mark.parametrize(
    ("late", "ready"),
    [
        (starting(**RUNNING, started=True), "Degraded"),
        (starting(**RUNNING, started=False, restartCount=1), "Degraded"),
        (starting(state={"terminated": {"exitCode": 1}}), "CrashLoopBackOff"),
    ],
)
def test_a_pod_that_served_and_does_not_any_more(late: dict[str, Any], ready: str) -> None:
    pods = [pod("demo-0"), late]
    found = states(observed(deployment(2, 2, 1, conditions=[SETTLED]), pods), outcome(), replicas=2)
    assert found["Available"] == ("True", "Available")
    assert found["Progressing"] == ("False", "Degraded")
    assert found["Ready"] == ("False", ready)


@pytest.mark.parametrize("late", [starting(""), starting(**RUNNING)])
def test_a_pod_that_starts_for_the_first_time_is_no_fall_back(late: dict[str, Any]) -> None:
    """Scaled up, or the pod of a lost node made anew."""
    seen = observed(deployment(2, 2, 1, conditions=[SETTLED]), [pod("demo-0"), late])
    assert states(seen, outcome(), replicas=2)["Progressing"][0] == "True"


def test_a_model_that_cannot_load_progresses_no_further() -> None:
    last = {"exitCode": 1, "message": "dsd-cause: ModelNotFound\nOSError: x"}
    crashed = pod("demo-1", ready=False, containerStatuses=[waiting("engine", "CrashLoopBackOff", "", last)])
    found = states(observed(deployment(ready=0), [crashed]), outcome())
    assert found["Progressing"] == found["Ready"] == found["Available"] == ("False", "ModelNotFound")
    old = states(observed(deployment(2, 1, 1), [pod("demo-0"), crashed]), outcome(), replicas=2)
    assert (old["Available"][0], old["Progressing"]) == ("True", ("False", "ModelNotFound"))


CRASHED = waiting("engine", "CrashLoopBackOff", "", {"exitCode": 1, "message": "x"})


def test_a_pod_that_is_held_back_is_the_least_of_all() -> None:
    held = [pod(f"demo-{number}", ready=False, phase="Pending") for number in range(2)]
    for each in held:
        each["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    crashed = pod("demo-9", ready=False, containerStatuses=[CRASHED])
    found = conditions(observed(deployment(3, 3, 0), [*held, crashed]), outcome(), replicas=3)
    assert found["Ready"]["reason"] == "CrashLoopBackOff"


@pytest.mark.parametrize("dead", [{"phase": "Failed", "reason": "Evicted"}, {"deleted": True}])
def test_what_was_wrong_with_a_pod_that_is_gone_or_goes_is_not_told(dead: dict[str, Any]) -> None:
    old = pod("demo-0", ready=False, containerStatuses=[CRASHED], **{k: v for k, v in dead.items() if k != "deleted"})
    if "deleted" in dead:
        old["metadata"]["deletionTimestamp"] = NOW
    found = states(observed(deployment(1, 1, 0), [old, starting()]), outcome())
    assert {found["Available"], found["Ready"]} == {("False", "NoPodsReady"), ("False", "ContainerCreating")}


def test_an_engine_that_hangs_is_not_ready_and_its_network_is_not_to_blame() -> None:
    silent = outcome([push(state=PushState.UNREACHABLE, message="no answer in time")])
    assert states(observed(deployment(ready=0), [pod(ready=False)]), silent)["ScheduleApplied"][1] == "PodNotReady"
    assert states(SERVING, silent)["ScheduleApplied"][1] == "PodUnreachable"


def test_a_change_that_a_child_in_use_cannot_take_concerns_ready_alone() -> None:
    kept = ApplyFailure("PersistentVolumeClaim", "demo", "cannot grow", in_use=True)
    found = states(SERVING, outcome([push(status=answer())], failures=[kept]))
    assert found["Ready"] == ("False", "ApplyFailed")
    assert (found["Available"][0], found["Progressing"], found["ScheduleApplied"][0]) == (
        "True", ("False", "RolledOut"), "True",
    )  # fmt: skip


CLAIM = {"metadata": {}, "spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Bound"}}


def test_an_existing_claim_that_is_being_deleted_starts_no_pod() -> None:
    leaving = ExistingClaim("models", {**CLAIM, "metadata": {"deletionTimestamp": NOW}})
    seen = observed(deployment(ready=0), [starting("")], claim=leaving)
    found = conditions(seen, outcome(), cache={"existingClaim": "models"})["Ready"]
    assert (found["reason"], "is being deleted" in found["message"]) == ("CacheNotAsAsked", True)


@pytest.mark.parametrize(("replicas", "surge", "noted"), [(2, 0, True), (1, 1, True), (1, 0, False), (0, 1, False)])
def test_how_many_pods_may_mount_an_existing_claim(replicas: int, surge: int, noted: bool) -> None:
    pods = [pod(f"demo-{number}") for number in range(replicas)]
    seen = observed(deployment(replicas, replicas, 0), pods, claim=ExistingClaim("models", CLAIM))
    spec = resource({"replicas": replicas, "rollout": {"maxSurge": surge}, "cache": {"existingClaim": "models"}})
    assert bool(list(claim_notes(spec, seen.claim))) is noted


def made_from(image: str) -> dict[str, Any]:
    return {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"image": image}]}}}


def replica_set(image: str) -> dict[str, Any]:
    """One that the Deployment's controller has made: with a mark of its own."""
    spec = made_from(image)
    spec["template"]["metadata"]["labels"]["pod-template-hash"] = image
    return {"metadata": {"name": image, "uid": image}, "spec": spec}


@pytest.mark.parametrize(
    ("asked", "sets", "progressing", "ready"),
    [
        ("old", ["old"], ("False", "ModelNotFound"), "ModelNotFound"),
        ("new", ["old", "new"], ("True", "RollingOut"), "RollingOut"),
        ("new", ["old"], ("True", "RollingOut"), "RollingOut"),
    ],
    ids=["the-newest", "being-replaced", "yet-to-be-replaced"],
)
def test_what_is_wrong_with_a_pod_that_is_replaced_stops_nothing(
    asked: str, sets: list[str], progressing: tuple[str, str], ready: str
) -> None:
    """It may be what the change mends: whoever waits for the roll-out must not be told that it has failed."""
    ended = waiting("engine", "CrashLoopBackOff", "", {"exitCode": 1, "message": "dsd-cause: ModelNotFound\nx"})
    broken = pod(ready=False, containerStatuses=[ended])
    broken["metadata"]["ownerReferences"] = [{"uid": "old", "controller": True}]
    live = {**deployment(2, 0 if asked == "new" else 2, 0), "spec": made_from(asked)}
    found = states(observed(live, [broken], [replica_set(name) for name in sets]), outcome(), replicas=2)
    assert (found["Progressing"], found["Ready"]) == (progressing, ("False", ready))
    assert found["Available"] == ("False", "ModelNotFound"), "why nothing serves now"


@pytest.mark.parametrize(
    "live", [deployment(behind=True), deployment(replicas=2, updated=1, ready=2), deployment(updated=0)]
)
def test_a_rollout_is_not_ready_though_it_serves(live: dict[str, Any]) -> None:
    found = states(observed(live, [pod()]), ALL_WELL)
    assert found["Available"] == ("True", "Available")
    assert found["Progressing"] == ("True", "RollingOut")
    assert found["Ready"] == ("False", "RollingOut")


def test_scaled_to_zero_is_as_asked_and_serves_nothing() -> None:
    assert states(observed(deployment(0, 0, 0)), outcome(), replicas=0) == {
        "Available": ("False", "ScaledToZero"),
        "Progressing": ("False", "RolledOut"),
        "ScheduleApplied": ("True", "ScaledToZero"),
        "Ready": ("True", "ScaledToZero"),
    }


def test_dead_and_terminating_pods_are_not_counted() -> None:
    leaving = pod("demo-leaving")
    leaving["metadata"]["deletionTimestamp"] = NOW
    evicted = [pod(f"demo-evicted-{i}", ready=False, phase="Failed", reason="Evicted") for i in range(3)]
    seen = observed(deployment(), [*evicted, leaving, pod("demo-done", phase="Succeeded"), pod()])
    made = status(seen, ALL_WELL)
    assert made["ready"] == "1/1"
    assert made["schedule"]["applied"] == "1/1"
    assert made["schedule"]["outOfSync"] == []
    assert conditions(seen, ALL_WELL)["ScheduleApplied"]["status"] == "True"
    assert conditions(seen, ALL_WELL)["Ready"]["status"] == "True"


@pytest.mark.parametrize(
    ("state", "applied", "ready"),
    [
        (PushState.UNREACHABLE, ("Unknown", "PodUnreachable"), ("True", "Ready")),
        (PushState.REFUSED, ("False", "RefusedByEngine"), ("False", "RefusedByEngine")),
        (PushState.UNAUTHORIZED, ("False", "TokenRefused"), ("False", "TokenRefused")),
        (PushState.PLUGIN_OFF, ("False", "RuntimePluginOff"), ("False", "RuntimePluginOff")),
    ],
)
def test_a_pod_out_of_reach_is_unknown_and_a_refusal_is_false(
    state: PushState, applied: tuple[str, str], ready: tuple[str, str]
) -> None:
    done = outcome([push(state=state, message="because")])
    found = states(SERVING, done)
    assert found["ScheduleApplied"] == applied
    assert found["Ready"] == ready
    assert "because" in conditions(SERVING, done)["ScheduleApplied"]["message"]
    assert status(SERVING, done)["schedule"]["outOfSync"] == [{"pod": "demo-1", "reason": state.value}]


def test_applied_unknown_and_refused_pods_add_up() -> None:
    pods = [pod(f"demo-{i:02}") for i in range(16)]
    states_ = [PushState.APPLIED] * 2 + [PushState.UNREACHABLE] * 11 + [PushState.REFUSED] * 2
    pushes = [push(f"demo-{i:02}", state) for i, state in enumerate(states_)]
    block = status(observed(deployment(16, 16, 15), pods), outcome(pushes), replicas=16)["schedule"]
    assert (block["applied"], block["podsApplied"], block["podsUnknown"], block["podsTotal"]) == ("2/16", 2, 12, 16)
    assert len(block["outOfSync"]) == 10
    assert [item["reason"] for item in block["outOfSync"][:3]] == ["RefusedByEngine"] * 2 + ["PodUnreachable"]


def test_a_plugin_that_is_off_but_started_with_this_schedule_counts_as_applied() -> None:
    done = outcome([push(state=PushState.PLUGIN_OFF, message="vLLM 9 is not known", status=answer(mode="off"))])
    assert states(SERVING, done)["ScheduleApplied"] == ("True", "Applied")
    message = conditions(SERVING, done)["ScheduleApplied"]["message"]
    assert message.endswith("1 pod was started with it, and another one takes a restart: vLLM 9 is not known")
    other = outcome([push(state=PushState.PLUGIN_OFF, status=answer(mode="off", hash_="0" * 16))])
    assert "restart" in conditions(SERVING, other)["ScheduleApplied"]["message"]


@pytest.mark.parametrize(
    ("faulty", "reason", "words"),
    [
        (pod(ready=False, containerStatuses=[waiting("engine", "ImagePullBackOff", "denied")]), "ImagePullBackOff",
         "pod demo-1: container engine: ImagePullBackOff: denied"),
        (pod(ready=False, containerStatuses=[waiting("engine", "CrashLoopBackOff", "", {"exitCode": 137,
         "reason": "OOMKilled"})]), "OOMKilled", "memory limit"),
    ],
)  # fmt: skip
def test_a_waiting_pods_own_reason_reaches_the_status(faulty: dict[str, Any], reason: str, words: str) -> None:
    seen = observed(deployment(ready=0), [faulty])
    found = conditions(seen, outcome())
    assert found["Available"]["reason"] == found["Ready"]["reason"] == reason
    for kind in ("Available", "Progressing", "Ready"):
        assert words in found[kind]["message"]


def test_many_pods_with_one_fault_are_one_message() -> None:
    containers = [waiting("engine", "ImagePullBackOff", "denied")]
    pods = [pod(f"demo-{i}", ready=False, containerStatuses=containers) for i in range(5)]
    message = conditions(observed(deployment(5, 5, 0), pods), outcome(), replicas=5)["Ready"]["message"]
    assert message == "pod demo-0 (and 4 more pods): container engine: ImagePullBackOff: denied"


@pytest.mark.parametrize("live", [deployment(0, 0, 0, conditions=[QUOTA]),
                                  deployment(0, 0, 0, conditions=[QUOTA, DEADLINE])])  # fmt: skip
def test_pods_that_may_not_be_made_say_why_before_and_after_the_deadline(live: dict[str, Any]) -> None:
    found = conditions(observed(live), outcome())
    assert found["Ready"]["reason"] == found["Progressing"]["reason"] == "PodCreationFailed"
    assert "exceeded quota: gpus" in found["Ready"]["message"]


def test_a_replica_sets_refusal_counts_too() -> None:
    seen = observed(deployment(0, 0, 0), replica_sets=({"status": {"conditions": [QUOTA]}},))
    assert states(seen, outcome())["Ready"] == ("False", "PodCreationFailed")


def test_the_deadline_passes_with_the_pods_reason_in_the_message() -> None:
    seen = observed(
        deployment(ready=0, conditions=[DEADLINE]),
        [pod(ready=False, containerStatuses=[waiting("engine", "ImagePullBackOff", "denied")])],
    )
    found = conditions(seen, outcome())
    assert (found["Progressing"]["status"], found["Progressing"]["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert "denied" in found["Progressing"]["message"]


def test_a_pod_that_is_held_back_is_no_failure_even_after_the_deadline() -> None:
    held = pod(ready=False, phase="Pending", conditions=[])
    held["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    found = states(observed(deployment(ready=0, conditions=[DEADLINE]), [held]), outcome())
    assert found["Progressing"] == ("True", "SchedulingGated")
    assert found["Ready"] == ("False", "SchedulingGated")


def test_an_invalid_spec_leaves_what_serves_alone() -> None:
    done = outcome([push(status=answer())], problems=[Problem("spec.engine.extraArgs[0]", "remove it")])
    found = conditions(SERVING, done)
    assert found["Available"]["status"] == "True"
    assert found["ScheduleApplied"]["status"] == "True"
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "InvalidSpec")
    assert found["Ready"]["message"] == "spec.engine.extraArgs[0]: remove it"


def test_an_invalid_schedule_is_not_applied() -> None:
    done = outcome(problems=[Problem("spec.schedule[0]", "no")], rendered=False)
    assert states(SERVING, done)["ScheduleApplied"] == ("False", "InvalidSpec")
    assert "hash" not in status(SERVING, done)["schedule"]


def test_many_problems_are_counted() -> None:
    done = outcome(problems=[Problem(f"spec.x{i}", "no") for i in range(9)])
    assert conditions(SERVING, done)["Ready"]["message"].endswith("and 6 more")


def test_a_child_that_is_refused_and_one_that_is_not_ours() -> None:
    refused = outcome([push()], failures=[ApplyFailure("Deployment", "demo", "quota")])
    assert states(SERVING, refused)["Ready"] == ("False", "ApplyFailed")
    assert states(SERVING, refused)["ScheduleApplied"] == ("True", "Applied")
    foreign = outcome(failures=[ApplyFailure("Deployment", "demo", "is not ours", foreign=True)])
    assert states(SERVING, foreign)["Ready"] == ("False", "ForeignObject")
    assert conditions(SERVING, foreign)["Ready"]["message"] == "Deployment demo: is not ours"
    assert states(SERVING, foreign)["Available"][0] == "False", "a Deployment that is not ours says nothing about us"


def test_a_monitor_that_cannot_be_made_concerns_ready_alone() -> None:
    missing = ApplyFailure("PodMonitor", "demo", "this cluster has no PodMonitor", missing_kind=True)
    before, after = states(SERVING, ALL_WELL), states(SERVING, outcome([push(status=answer())], failures=[missing]))
    assert after.pop("Ready") == ("False", "ApiMissing")
    before.pop("Ready")
    assert after == before
    refused = outcome([push(status=answer())], failures=[ApplyFailure("PodMonitor", "demo", "no rights")])
    assert states(SERVING, refused)["Ready"] == ("False", "ApplyFailed")
    foreign = outcome([push(status=answer())], failures=[ApplyFailure("PodMonitor", "demo", "not ours", foreign=True)])
    assert states(SERVING, foreign)["Ready"] == ("False", "ForeignObject")


def test_pods_that_do_not_start_are_worse_than_a_missing_monitor() -> None:
    missing = ApplyFailure("PodMonitor", "demo", "this cluster has no PodMonitor", missing_kind=True)
    starting = observed(deployment(ready=0), [pod(ready=False)])
    assert states(starting, outcome([], failures=[missing]))["Ready"] == states(starting, outcome([]))["Ready"]


def test_made_up_tokens_are_never_silent() -> None:
    """Ready, since it is what was asked for; first in the message, with a reason of its own, and a Warning."""
    parameters = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.27}
    made = status(SERVING, ALL_WELL, **{"drafter.parameters": parameters})
    (ready,) = [condition for condition in made["conditions"] if condition["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("True", "SyntheticAcceptance")
    assert ready["message"].startswith("TOKENS ARE MADE UP")
    warnings = [event for event in transitions({}, made) if event.type == "Warning"]
    assert [event.reason for event in warnings] == ["SyntheticAcceptance"]
    assert [event.type for event in transitions(made, status(SERVING, ALL_WELL))] == ["Normal"]
