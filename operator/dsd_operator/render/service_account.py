"""The pods' ServiceAccount: an identity of their own, without rights and without a mounted token."""

from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.render.owner import child_metadata


def service_account(resource: DSDDeployment) -> dict[str, Any]:
    """No imagePullSecrets and no secrets: OpenShift keeps its own in these lists and would make new ones for ever."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": child_metadata(resource),
        "automountServiceAccountToken": False,
    }
