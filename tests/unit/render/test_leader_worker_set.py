"""The LeaderWorkerSet: leader and workers differ in what makes them so, and in nothing else."""

from typing import Any, Final

import pytest

from dsd_operator.render.labels import DEPLOYMENT_LABEL, NAME_LABEL, all_pods, selector
from dsd_operator.render.leader_worker_set import API_VERSION, any_member
from dsd_operator.render.names import MAX_GROUP_LENGTH, names_for
from tests.unit.resources import manifests, resource

NODES: Final = {"engine.nodes": 2, "engine.tensorParallelSize": 4}
PROBES: Final = {"startupProbe", "readinessProbe", "livenessProbe"}


def spec(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = manifests(resource({**NODES, **changes}))["LeaderWorkerSet"]["spec"]
    return made


def templates(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    described = spec(**changes)["leaderWorkerTemplate"]
    return described["leaderTemplate"], described["workerTemplate"]


def engine(template: dict[str, Any]) -> dict[str, Any]:
    (found,) = [c for c in template["spec"]["containers"] if c["name"] == "engine"]
    container: dict[str, Any] = found
    return container


def test_it_takes_the_place_of_the_deployment() -> None:
    single, several = manifests(resource()), manifests(resource(NODES))
    assert several.keys() == single.keys() - {"Deployment"} | {"LeaderWorkerSet"}
    assert several["LeaderWorkerSet"]["apiVersion"] == API_VERSION
    assert several["Service"] == single["Service"]


def test_groups_are_whole_and_roll_as_asked() -> None:
    made = spec(replicas=3, rollout={"maxSurge": 1, "maxUnavailable": 0})
    described = made["leaderWorkerTemplate"]
    assert (made["replicas"], described["size"]) == (3, 2)
    assert described["restartPolicy"] == "RecreateGroupOnPodRestart"
    assert made["startupPolicy"] == "LeaderCreated", "the leader is ready only with its workers"
    rolling = {"maxSurge": 1, "maxUnavailable": 0, "partition": 0}
    assert made["rolloutStrategy"] == {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}


def test_only_leaders_are_selected() -> None:
    names = names_for("demo")
    leader, worker = (template["metadata"]["labels"] for template in templates())
    assert selector(names).items() <= leader.items()
    assert worker[NAME_LABEL] != leader[NAME_LABEL]
    assert worker[DEPLOYMENT_LABEL] == leader[DEPLOYMENT_LABEL]
    assert all_pods(names).items() <= leader.items()
    assert all_pods(names).items() <= worker.items()


def test_workers_do_the_same_without_an_api_server() -> None:
    leader, worker = (engine(template) for template in templates())
    assert leader["args"][-6:] == ["--nnodes", "2", "--node-rank", "0", "--master-addr", "$(LWS_LEADER_ADDRESS)"]
    joined = ["--nnodes", "2", "--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"]
    assert worker["args"][-7:] == [*joined, "--headless"]
    assert worker["args"][:-7] == leader["args"][:-6]
    assert leader.keys() >= PROBES
    assert not PROBES & worker.keys()
    assert (len(leader["ports"]), worker["ports"]) == (1, [])
    for name in ("image", "resources", "volumeMounts", "securityContext", "env"):
        assert leader[name] == worker[name]


def test_what_the_user_adds_goes_into_both_but_probes() -> None:
    added = {
        "name": "engine",
        "readinessProbe": {"httpGet": {"path": "/ping", "port": "http"}},
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
        "ports": [{"name": "debug", "containerPort": 5678}],
    }
    changes = {"podTemplate.spec": {"containers": [added], "nodeSelector": {"pool": "a"}}}
    leader, worker = templates(**changes)
    assert leader["spec"]["nodeSelector"] == worker["spec"]["nodeSelector"] == {"pool": "a"}
    for template in (leader, worker):
        assert {"name": "NCCL_DEBUG", "value": "INFO"} in engine(template)["env"]
    assert engine(leader)["readinessProbe"]["httpGet"]["path"] == "/ping"
    assert not PROBES & engine(worker).keys()
    assert [port["name"] for port in engine(worker)["ports"]] == ["debug"]


def test_a_spread_without_a_selector_counts_leaders_and_workers() -> None:
    """Each pod has the same constraint, and must be among those that it counts."""
    rule = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    for template in templates(**{"podTemplate.spec": {"topologySpreadConstraints": [rule]}}):
        (made,) = template["spec"]["topologySpreadConstraints"]
        assert made["labelSelector"]["matchLabels"] == all_pods(names_for("demo"))
        assert made["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_members_are_told_from_other_pods() -> None:
    member = {"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/group-index": "0"}}}
    assert any_member([{"metadata": {}}, member])
    assert not any_member([{"metadata": {}}])


def test_each_pod_says_its_own_address_unless_the_user_does() -> None:
    leader, worker = templates()
    own = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert own in engine(leader)["env"]
    assert own in engine(worker)["env"]
    given = {"name": "VLLM_HOST_IP", "value": "10.1.2.3"}
    leader, worker = templates(**{"engine.env": [given]})
    for template in (leader, worker):
        assert [v for v in engine(template)["env"] if v["name"] == "VLLM_HOST_IP"] == [given]


def test_a_user_s_dollar_stays_literal() -> None:
    leader, _ = templates(**{"engine.extraArgs": ["--chat-template=$(LWS_LEADER_ADDRESS)"]})
    assert "--chat-template=$$(LWS_LEADER_ADDRESS)" in engine(leader)["args"]


def test_neither_schedule_nor_replicas_reach_the_pods() -> None:
    hot = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 1}]
    assert spec(schedule=hot, replicas=4)["leaderWorkerTemplate"] == spec()["leaderWorkerTemplate"]


def test_the_mark_follows_every_change_of_the_pods() -> None:
    marks = {templates(**c)[0]["metadata"]["annotations"]["dsd-operator.io/pods"] for c in (
        {}, {"engine.maxNumSeqs": 8}, {"engine.nodes": 4}, {"podTemplate.metadata": {"annotations": {"a": "b"}}},
    )}  # fmt: skip
    assert len(marks) == 4


@pytest.mark.parametrize("name", ["demo", "70b", "a.b", "a" * 63, "b" * 253])
def test_its_name_leaves_room_and_is_nobody_s(name: str) -> None:
    """StatefulSets and Services are called NAME and NAME-0; a pod carries NAME-0-HASH as a label."""
    group = names_for(name).group
    assert len(f"{group}-9999999-0123456789") <= 63
    assert len(group) <= MAX_GROUP_LENGTH
    assert group not in {names_for(other).base for other in (name, group, f"{name}-0", f"{name}-1")}
    assert f"{group}-0" != names_for(name).base


def test_names_differ_where_resources_do() -> None:
    names = ["demo", "demo-0", "c" * 80 + "a", "c" * 80 + "b", "a.b", "a-b"]
    assert len({names_for(name).group for name in names}) == len(names)
