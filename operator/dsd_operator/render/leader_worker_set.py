"""The LeaderWorkerSet: what a Deployment is, for engines that span several nodes. A kind that a cluster may not have.

A replica of it is one engine: a leader, which has the API server and the scheduler and holds the first part of the
model, and workers, which hold the other parts and do what the leader broadcasts (vLLM's `--nnodes` with the
multiprocessing executor, `v1/executor/multiproc_executor.py`). So a schedule goes to leaders only. A group starts and
ends as a whole: none of its pods can go on without the others.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.api.pod import Rollout
from dsd_operator.render.arguments import COMMAND
from dsd_operator.render.context import RenderContext
from dsd_operator.render.labels import joined, worker_labels
from dsd_operator.render.names import Names, names_for
from dsd_operator.render.owner import child_metadata, with_envelope
from dsd_operator.render.pod_template import ENGINE
from dsd_operator.render.probes import PORT_NAME

API_VERSION: Final = "leaderworkerset.x-k8s.io/v1"
KIND: Final = "LeaderWorkerSet"
ADVICE: Final = (
    "install LeaderWorkerSet (https://lws.sigs.k8s.io), or set spec.engine.nodes to 1. Pods that run go on meanwhile"
)

_DOMAIN: Final = "leaderworkerset.sigs.k8s.io"
_SET_LABEL: Final = f"{_DOMAIN}/name"
_GROUP_LABEL: Final = f"{_DOMAIN}/group-index"
_REVISION_LABEL: Final = f"{_DOMAIN}/template-revision-hash"
_SIZE_ANNOTATION: Final = f"{_DOMAIN}/size"
_LEADER_ANNOTATION: Final = f"{_DOMAIN}/leader-name"
_REPLICAS_ANNOTATION: Final = f"{_DOMAIN}/replicas"

_PODS_ANNOTATION: Final = "dsd-operator.io/pods"
"""Hash of the pods' description, on the leaders' template. The status of a LeaderWorkerSet names no generation; this
tells whether its controller has taken the latest one in."""

_DIGEST_LENGTH: Final = 16

_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")


def is_wanted(resource: DSDDeployment) -> bool:
    """Whether the engines of this resource span several nodes."""
    return resource.spec.engine.nodes > 1


def leader_worker_set(resource: DSDDeployment, context: RenderContext, pods: Mapping[str, Any]) -> dict[str, Any]:
    """The resource has passed `preflight`; `pods` is the part of the spec that restarts pods (`workload.pods_of`)."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": with_envelope({**child_metadata(resource), "name": _name(resource)}, resource),
        "spec": {
            **context.scale(resource),
            # Workers wait for the leader's address, and the leader is ready only with all of them: both start at once.
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": _strategy(resource.spec.rollout),
            "networkConfig": {"subdomainPolicy": "Shared"},
            **pods,
        },
    }


def _strategy(rollout: Rollout) -> dict[str, Any]:
    bounds = {"maxSurge": rollout.max_surge, "maxUnavailable": rollout.max_unavailable}
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": {**bounds, "partition": 0}}


def _name(resource: DSDDeployment) -> str:
    return names_for(resource.metadata.name).group


def pods(resource: DSDDeployment, template: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the spec that restarts pods when it changes, from the pod of an engine on one node."""
    described: dict[str, Any] = {
        "size": resource.spec.engine.nodes,
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": _leader(template, resource.spec.engine.nodes),
        "workerTemplate": _worker(template, resource.spec.engine.nodes, names_for(resource.metadata.name)),
    }
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    described["leaderTemplate"]["metadata"]["annotations"][_PODS_ANNOTATION] = digest[:_DIGEST_LENGTH]
    return {"leaderWorkerTemplate": described}


def _leader(template: Mapping[str, Any], nodes: int) -> dict[str, Any]:
    made = deepcopy(dict(template))
    _join(_engine(made), nodes, rank="0")
    return made


def _worker(template: Mapping[str, Any], nodes: int, names: Names) -> dict[str, Any]:
    """The same pod without what needs an API server, the user's probes of the engine included.

    It ends after its leader, which may still answer requests and needs it for each step.
    """
    made = deepcopy(dict(template))
    made["metadata"]["labels"].update(worker_labels(names))
    engine = _engine(made)
    for probe in _PROBES:
        engine.pop(probe, None)
    engine["lifecycle"] = {"preStop": {"exec": {"command": [*COMMAND, "--dsd-wait-for-leader"]}}}
    engine["ports"] = [port for port in engine["ports"] if port.get("name") != PORT_NAME]
    _join(engine, nodes, rank="$(LWS_WORKER_INDEX)")
    engine["args"].append("--headless")
    return made


def _join(engine: dict[str, Any], nodes: int, rank: str) -> None:
    """Give the container its place in the group. The kubelet fills in the variables, which the controller sets."""
    engine["args"] += ["--nnodes", str(nodes), "--node-rank", rank, "--master-addr", "$(LWS_LEADER_ADDRESS)"]
    # vLLM would guess by its way to the internet, and there may be none.
    if not any(variable["name"] == "VLLM_HOST_IP" for variable in engine["env"]):
        engine["env"].append({"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})


def _engine(template: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in template["spec"]["containers"] if c["name"] == ENGINE)
    return found


def templates(spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The pods in the spec of a LeaderWorkerSet: a leader's, a worker's."""
    described = spec["leaderWorkerTemplate"]
    return described["leaderTemplate"], described["workerTemplate"]


def members(names: Names) -> str:
    """Selector of the StatefulSets that its controller makes: one for the leaders, one for each group's workers."""
    return joined({_SET_LABEL: names.group})


def leader_spec(live: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec of the pods that answer."""
    found: Mapping[str, Any] = live["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    return found


def taken_in(live: Mapping[str, Any], stateful_set: Mapping[str, Any]) -> bool:
    """Whether the leaders' StatefulSet has been made from this very spec."""
    replicas = _annotation(stateful_set["metadata"], _REPLICAS_ANNOTATION)
    return made_from(live, stateful_set) and replicas == str(live["spec"]["replicas"])


def made_from(live: Mapping[str, Any], stateful_set: Mapping[str, Any]) -> bool:
    """Whether the leaders' StatefulSet makes the pods that are asked for; of how many it may be behind."""
    wanted = live["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]
    made = stateful_set["spec"]["template"]["metadata"]
    return _annotation(made, _PODS_ANNOTATION) == _annotation(wanted, _PODS_ANNOTATION)


def revision_of(thing: Mapping[str, Any]) -> str:
    """The revision that a StatefulSet or a pod was made from."""
    return str((thing["metadata"].get("labels") or {}).get(_REVISION_LABEL, ""))


def size_of(leader: Mapping[str, Any]) -> int:
    """Pods of this leader's group, itself included; -1 where it does not say."""
    return int(_annotation(leader["metadata"], _SIZE_ANNOTATION) or -1)


def number_of(pod: Mapping[str, Any]) -> int:
    """The number of the group that a pod is in; -1 for a pod of no group."""
    return int((pod["metadata"].get("labels") or {}).get(_GROUP_LABEL, -1))


def any_member(pods: Iterable[Mapping[str, Any]]) -> bool:
    """Whether pods of groups are among these, also ones that end, and whose LeaderWorkerSet has gone."""
    return any(number_of(pod) >= 0 for pod in pods)


def leader_of(worker: Mapping[str, Any]) -> str:
    """The name of a worker's leader."""
    return _annotation(worker["metadata"], _LEADER_ANNOTATION)


def _annotation(metadata: Mapping[str, Any], name: str) -> str:
    return str((metadata.get("annotations") or {}).get(name, ""))
