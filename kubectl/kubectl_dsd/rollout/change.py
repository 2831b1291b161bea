"""Changes the envelope of a resource, unless somebody else changed its spec in the meantime."""

from typing import Any, Final

from kubectl_dsd import kinds
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.errors import ApiFailure, Failure
from kubectl_dsd.output import note
from kubectl_dsd.schedule import managers, patching

_TRIES: Final = 10
_CONFLICT: Final = 409


def write(cluster: Cluster, before: Json, spec: dict[str, Any], *, dry_run: bool) -> Json:
    """Merge `spec` into the resource; returns it as the API server has it then. Raises Failure."""
    meta = before["metadata"]
    version = meta["resourceVersion"]
    for tool in managers.tools(meta):
        note(f"{tool} manages this resource and may set this back: change it at the source too")
    for _ in range(_TRIES):
        body = {"metadata": {"resourceVersion": version, "uid": meta["uid"]}, "spec": spec}
        try:
            return cluster.patch(kinds.DEPLOYMENT, meta["namespace"], meta["name"], body, dry_run=dry_run)
        except ApiFailure as failure:
            if failure.status != _CONFLICT:
                raise patching.in_words(failure, "spec", "kubectl dsd rollout history NAME") from failure
        version = _version_if_untouched(cluster, before)
    raise Failure("the resource changes too often to be changed", "Try again.")


def _version_if_untouched(cluster: Cluster, before: Json) -> str:
    """The operator writes the status at any time; a spec that changed is another matter."""
    now, then = cluster.deployment(before["metadata"]["name"])["metadata"], before["metadata"]
    if (now["uid"], now["generation"]) != (then["uid"], then["generation"]):
        raise Failure("somebody else changed the resource at the same moment; nothing was changed", "Try again.")
    return str(now["resourceVersion"])
