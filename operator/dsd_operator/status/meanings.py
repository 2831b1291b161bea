"""What each reason means and what to do about it: one text for the reference page and for whoever explains a status.

`tools.generate_tables` writes docs/reference/conditions.md from it. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dsd_operator.status.reasons import Reason


@dataclass(frozen=True)
class Meaning:
    """One reason in Markdown. `remedy` is empty where there is nothing to do."""

    means: str
    remedy: str = ""


MEANINGS: Final[Mapping[Reason, Meaning]] = {
    Reason.AVAILABLE: Meaning("pods serve"),
    Reason.ROLLED_OUT: Meaning("every pod is made from the current spec and ready"),
    Reason.APPLIED: Meaning(
        "every pod uses the schedule; the message has remarks, such as a K outside `preparedTokens`",
    ),
    Reason.READY: Meaning(
        "all of the spec is in force; the message says what has a catch, and where vLLM resolved something "
        "else than the spec says",
    ),
    Reason.SCALED_TO_ZERO: Meaning("`replicas` is 0"),
    Reason.SYNTHETIC_ACCEPTANCE: Meaning(
        "pods serve in vLLM's benchmark mode (`rejection_sample_method: synthetic`): which drafts are "
        "accepted is made up, and so is the text",
        "remove it from `drafter.parameters` where users read the answers",
    ),
    Reason.CREATING: Meaning("the children are being made", "wait"),
    Reason.ROLLING_OUT: Meaning("pods are being replaced after a change that needs a restart", "wait"),
    Reason.PENDING: Meaning("pods wait for a node", "wait; it becomes `Unschedulable` where no node fits"),
    Reason.CONTAINER_CREATING: Meaning(
        "pods are on their node, which pulls the image, mounts volumes and runs init containers",
        "wait; `kubectl describe pod` shows which",
    ),
    Reason.STARTING: Meaning("pods load the model or capture graphs", "wait; `kubectl logs` shows how far"),
    Reason.NO_PODS_READY: Meaning("no pod is ready, and nothing is known to be wrong", "wait"),
    Reason.SCHEDULING_GATED: Meaning(
        "another controller (Kueue, for example) holds the pods back; the message names its gate",
        "ask that controller",
    ),
    Reason.INVALID_SPEC: Meaning("the message names each field and what is wrong with it", "change the field"),
    Reason.APPLY_FAILED: Meaning(
        "the API server refused a child, the message is its own; or it has not answered for seconds",
        "change what the message names; look at slow admission webhooks",
    ),
    Reason.FOREIGN_OBJECT: Meaning(
        "an object that is not ours has the name of a child",
        "delete it, or rename the resource",
    ),
    Reason.API_MISSING: Meaning(
        "the spec asks for a child of a kind that the cluster does not have, such as a PodMonitor; if no pod needs it, "
        "pods and schedule go on, and no other condition knows of it. Without LeaderWorkerSets there are no pods for "
        "`engine.nodes` above 1",
        "install the CRDs that the message names (found within half a minute), or switch it off",
    ),
    Reason.CACHE_NOT_AS_ASKED: Meaning(
        "the claim that `cache.existingClaim` names is missing or lost; or the operator's own claim is there and can "
        "never become what `cache` says, such as one of another class",
        "do what the message says; pods and schedule go on with the claim as it is",
    ),
    Reason.POD_CREATION_FAILED: Meaning(
        "a quota, a limit range, Pod Security or an admission webhook refuses the pods. Of engines over several nodes "
        "the message names the StatefulSet that lacks pods, and only its Events say why",
        "change what the message or `kubectl describe statefulset` names",
    ),
    Reason.PROGRESS_DEADLINE_EXCEEDED: Meaning(
        "pods were not ready within `startup.timeoutSeconds` and ten minutes; engines over several nodes have the time "
        "to drain beside",
        "see the message, or raise the field",
    ),
    Reason.DEGRADED: Meaning(
        "the last roll-out is done, and some pods that served do not any more; Ready has their own reason where "
        "one is known",
        "see the message",
    ),
    Reason.UNSCHEDULABLE: Meaning(
        "no node has room, or a claim or a toleration is missing",
        "see the scheduler's words in the message",
    ),
    Reason.IMAGE_PULL_BACK_OFF: Meaning(
        "the image cannot be pulled",
        "check `engine.image` and the pull secrets in `podTemplate`",
    ),
    Reason.CONTAINER_CONFIG_ERROR: Meaning(
        "a Secret or ConfigMap is missing, or the image runs as root",
        "make it, or set what the message says",
    ),
    Reason.CONTAINER_START_ERROR: Meaning("the container cannot be created or started", "see the message"),
    Reason.CRASH_LOOP_BACK_OFF: Meaning(
        "a container ends again and again, for none of the causes known here; the message has its exit code and "
        "last words",
        "see the message",
    ),
    Reason.STARTUP_TIMEOUT: Meaning(
        "an engine was not healthy within `startup.timeoutSeconds`, and was ended",
        "see how far its log came; raise the field if it was getting on",
    ),
    Reason.MODEL_NOT_FOUND: Meaning(
        "the engine finds no such model, revision or path; or the model is private and the token cannot see it",
        "correct `model` or `drafter.model`; for a path mount the folder with `podTemplate`",
    ),
    Reason.MODEL_ACCESS_DENIED: Meaning(
        "the hub does not give the pod the model: it is gated, or the token is wrong",
        "name a Secret with a token that may read it in `model.tokenSecretRef`",
    ),
    Reason.MODEL_HUB_UNREACHABLE: Meaning(
        "the pod cannot reach the model hub, and the model is not in its cache",
        "let the pods out (a proxy goes into `engine.env`), switch `cache.offline` off for the first start, or mount "
        "the model and give its path",
    ),
    Reason.MODEL_INCOMPLETE: Meaning(
        "the model's folder or repository lacks config, tokenizer or weights", "give it the files"
    ),
    Reason.MODEL_UNSUPPORTED: Meaning(
        "this vLLM does not know the model's architecture, or may not run the code that the model brings",
        "use an image with a vLLM that does, or add `--trust-remote-code` to `engine.extraArgs` if you trust it",
    ),
    Reason.SPECULATION_UNSUPPORTED: Meaning(
        "vLLM cannot speculate in this way with this model: the method, the number of tokens, or a drafter that "
        "does not fit",
        "change `drafter` as the message says; [Methods](methods.md) has what each one needs",
    ),
    Reason.ENGINE_ARGUMENT_INVALID: Meaning(
        "vLLM does not understand an argument, or refuses its value", "correct the field or `engine.extraArgs`"
    ),
    Reason.ENGINE_OUT_OF_MEMORY: Meaning(
        "the memory of GPU or CPU does not hold the model, the drafter and a KV cache of the asked length",
        "lower `engine.maxModelLen` or `engine.maxNumSeqs`, prepare fewer K, or split the model over more GPUs",
    ),
    Reason.DEVICE_NOT_FOUND: Meaning(
        "the engine sees no GPU", "ask for one in `resources.limits`, with an image that fits the node's GPUs"
    ),
    Reason.STORAGE_FULL: Meaning(
        "the disk, the cache's volume or `/dev/shm` is full",
        "raise `cache.size` or `sharedMemory.sizeLimit`, or give the pods a larger disk",
    ),
    Reason.STORAGE_ACCESS_DENIED: Meaning(
        "the engine may not read or write a file",
        "check the volume's owner against `cache.fsGroup` and `podTemplate`'s securityContext",
    ),
    Reason.OOM_KILLED: Meaning(
        "a container went over its memory limit",
        "raise `resources.limits.memory`, or lower what vLLM takes",
    ),
    Reason.POD_NOT_READY: Meaning("a pod still starts; it starts with the schedule", "wait"),
    Reason.POD_UNREACHABLE: Meaning(
        "no answer over HTTP; the file brings the schedule within about a minute",
        "let the operator reach port 8000 if you want it within a second",
    ),
    Reason.TOKEN_REFUSED: Meaning(
        "the pod refuses the operator's token, or the API server gives the operator none (`no token for the pod`); the "
        "file brings the schedule",
        "wait: keys are renewed; else see the operator's log, and its right to create `serviceaccounts/token`",
    ),
    Reason.REFUSED_BY_ENGINE: Meaning("the engine refuses the schedule; the message says why", "change the schedule"),
    Reason.RUNTIME_PLUGIN_OFF: Meaning(
        "this engine takes a schedule at start only; the message says why (an unknown vLLM, a topology, a failure)",
        "restart the pods, or change what the message names, such as the image's vLLM",
    ),
}
"""Every reason that is a condition's; the states of single pods included."""
