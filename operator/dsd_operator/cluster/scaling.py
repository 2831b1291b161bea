"""Whether an autoscaler scales a workload itself, and not the DSDDeployment that owns it.

It should not: `/scale` of the DSDDeployment is the place. But where one does, setting the number back again and again
would be a tug of war over pods that take minutes to load. So the number is left to it, and the status says so.

No hand-over is needed here. An autoscaler is noticed by the field that it took: its write made `spec.replicas` its own
and no longer ours, so leaving the field out of our apply changes nothing. Had it been ours alone, it would fall back
to 1.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dsd_operator.cluster import resources
from dsd_operator.cluster.client import FIELD_MANAGER, Client
from dsd_operator.cluster.errors import Forbidden

LOOK_AGAIN_SECONDS: Final = 10.0
"""No watch shows autoscalers; one that has gone leaves the number to the resource again."""

Object = Mapping[str, Any]

_log = logging.getLogger(__name__)


async def scaler_of(client: Client, workload: Object | None) -> str:
    """Name of the HorizontalPodAutoscaler that scales this object; empty if none does. KEDA makes one, too.

    Autoscalers are asked for only where somebody else has set the number. ApiError if they cannot be listed; without
    the right to list them the number counts as set by hand.
    """
    if workload is None or not _set_by_another(workload):
        return ""
    try:
        found = await client.list(resources.HORIZONTAL_POD_AUTOSCALER, workload["metadata"]["namespace"])
    except Forbidden as error:
        _log.warning("Cannot tell whether an autoscaler scales %s: %s", workload["kind"], error.message)
        return ""
    return next(_names(found, workload), "")


def _set_by_another(workload: Object) -> bool:
    """Whether a manager that is not ours owns the number of replicas, by way of /scale."""
    return any(
        entry.get("subresource") == "scale"
        and entry.get("manager") != FIELD_MANAGER
        and "f:replicas" in (entry.get("fieldsV1") or {}).get("f:spec", {})
        for entry in workload["metadata"].get("managedFields") or ()
    )


def _names(autoscalers: Iterable[Object], workload: Object) -> Iterator[str]:
    for autoscaler in autoscalers:
        target = autoscaler["spec"]["scaleTargetRef"]
        same_group = _group(target.get("apiVersion", "")) == _group(workload["apiVersion"])
        if same_group and (target["kind"], target["name"]) == (workload["kind"], workload["metadata"]["name"]):
            yield str(autoscaler["metadata"]["name"])


def _group(api_version: str) -> str:
    return api_version.partition("/")[0]
