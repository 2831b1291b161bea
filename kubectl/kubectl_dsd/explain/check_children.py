"""What keeps the operator's objects, and the pods, from being made. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.status.reasons import Reason
from kubectl_dsd.explain.facts import Facts
from kubectl_dsd.explain.finding import Finding, error, info, warning

_QUOTA: Final = re.compile(r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+)$")
_FOREIGN: Final = re.compile(r"\b([A-Z][A-Za-z]+) ([a-z0-9][-a-z0-9.]*):")


def check(facts: Facts) -> Iterator[Finding]:
    """The spec, objects in the way, refusals; and that the Deployment is paused or scaled to zero."""
    yield from _spec(facts)
    yield from _refused_pods(facts)
    yield from _paused(facts)
    if facts.current and facts.spec.get("replicas", 1) == 0:
        yield info(
            Reason.SCALED_TO_ZERO,
            "it is scaled to zero: nothing serves, as asked",
            f"kubectl scale dsd {facts.meta['name']} -n {facts.meta['namespace']} --replicas=1",
        )
    if facts.condition("Ready").get("reason") == Reason.SYNTHETIC_ACCEPTANCE:
        yield warning(
            Reason.SYNTHETIC_ACCEPTANCE,
            "it serves in vLLM's benchmark mode: which drafts are accepted is made up, and so is the text",
            "Remove rejection_sample_method from spec.drafter.parameters where users read the answers.",
        )


def _spec(facts: Facts) -> Iterator[Finding]:
    ready = facts.condition("Ready")
    reason, message = ready.get("reason"), str(ready.get("message") or "")
    if not facts.current:
        return
    if reason == Reason.INVALID_SPEC:
        yield error(
            reason, "the operator cannot use the spec", "Change the fields that it names; `kubectl explain dsd.spec` "
            "describes them.", said=[message],
        )  # fmt: skip
    elif reason == Reason.FOREIGN_OBJECT:
        yield _foreign(facts, message)
    elif reason == Reason.CACHE_NOT_AS_ASKED:
        yield error(
            reason,
            "the claim for weights and compiled code is not what spec.cache says",
            "Do as its message says; pods that run go on with the claim as it is.",
            said=[message],
        )
    elif reason == Reason.API_MISSING:
        yield _missing(facts, message)
    elif reason == Reason.APPLY_FAILED:
        yield error(
            reason,
            "the API server refuses an object of this deployment, or has not answered for seconds",
            "Change what its message names; for a slow answer look at the admission webhooks.",
            said=[message],
        )


def _missing(facts: Facts, message: str) -> Finding:
    """A kind that the cluster does not have: without a LeaderWorkerSet there are no pods, all others stand beside."""
    needed = facts.condition("Progressing").get("reason") == Reason.API_MISSING
    follows = "no pod can be made" if needed else "pods and schedule go on"
    return error(
        Reason.API_MISSING,
        f"the cluster does not have a kind of object that the spec asks for: {follows}",
        "Install what its message names, or take the field back that asks for it.",
        said=[message],
    )


def _foreign(facts: Facts, message: str) -> Finding:
    """Somebody else's object has the name of a child."""
    found = _FOREIGN.search(message)
    kind, name = (found[1], found[2]) if found else ("object", facts.meta["name"])
    command = f"kubectl delete {kind.lower()} {name} -n {facts.meta['namespace']}" if found else "delete it"
    return error(
        Reason.FOREIGN_OBJECT,
        f"a {kind} that belongs to somebody else has the name that this deployment needs",
        f"If nobody needs it: {command}. Else create the DSDDeployment under another name.",
        f"{kind} {name}",
        said=[message],
    )


def _refused_pods(facts: Facts) -> Iterator[Finding]:
    """Quota, limit range, Pod Security, webhook: ReplicaFailure of the ReplicaSets; Events of a group's StatefulSet."""
    for workload in (facts.child, *facts.replica_sets):
        for condition in ((workload or {}).get("status") or {}).get("conditions") or ():
            if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
                yield _refusal(facts, str(condition.get("message") or ""))
                return
    refused = [event for event in facts.events if facts.lacking and _is_refusal(event, facts.lacking)]
    if refused:
        yield _refusal(facts, str(refused[-1].get("message") or ""))


def _is_refusal(event: Mapping[str, Any], name: str) -> bool:
    about = event.get("involvedObject") or {}
    return (about.get("kind"), about.get("name"), event.get("reason")) == ("StatefulSet", name, "FailedCreate")


def _refusal(facts: Facts, message: str) -> Finding:
    namespace = facts.meta["namespace"]
    if quota := _QUOTA.search(message):
        name, requested, used, limited = (part.strip() for part in quota.groups())
        return error(
            Reason.POD_CREATION_FAILED,
            f"the quota {name} leaves no room: a pod asks for {requested}; {used} of {limited} are in use",
            f"Ask for less in spec.resources or spec.replicas, free some, or have the quota raised: kubectl describe "
            f"resourcequota {name} -n {namespace}",
            f"ResourceQuota {name}",
            said=[message],
        )
    if "failed quota" in message or "must specify" in message:
        fix = "Set requests and limits in spec.resources: a quota of the namespace wants them."
        return error(Reason.POD_CREATION_FAILED, "a quota wants the pods to say what they need", fix, said=[message])
    if "violates PodSecurity" in message:
        return error(
            Reason.POD_CREATION_FAILED,
            "the namespace's Pod Security level forbids something that podTemplate asks for",
            "Remove what the message names from spec.podTemplate, or have the namespace's level changed.",
            said=[message],
        )
    if "admission webhook" in message:
        fix = "Do as its message says, or ask who runs the webhook."
        return error(Reason.POD_CREATION_FAILED, "an admission webhook refuses the pods", fix, said=[message])
    fix = "Change what the message names."
    return error(Reason.POD_CREATION_FAILED, "the API server refuses to create the pods", fix, said=[message])


def _paused(facts: Facts) -> Iterator[Finding]:
    child: Mapping[str, Any] = facts.child or {}
    if not (child.get("spec") or {}).get("paused"):
        return
    name = child["metadata"]["name"]
    status, meta = child.get("status") or {}, child["metadata"]
    behind = status.get("updatedReplicas", 0) < (child["spec"].get("replicas") or 0) or status.get(
        "observedGeneration", 0
    ) < meta.get("generation", 0)
    kind = error if behind else warning
    effect = "and pods wait for it" if behind else "so that the next change will not reach the pods"
    yield kind(
        "DeploymentPaused",
        f"somebody paused the Deployment's roll-out, {effect}",
        f"kubectl rollout resume deployment {name} -n {facts.meta['namespace']}",
        f"Deployment {name}",
    )
