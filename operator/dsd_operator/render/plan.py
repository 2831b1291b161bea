"""The plan: every child of a resource in apply order. The pure heart of a reconcile pass."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render import extras
from dsd_operator.render.config_map import config_map
from dsd_operator.render.context import RenderContext
from dsd_operator.render.deployment import deployment
from dsd_operator.render.preflight import envelope_problems, schedule_problems
from dsd_operator.render.quantity import canonical
from dsd_operator.render.service import service
from dsd_operator.render.service_account import service_account

Manifest = dict[str, Any]

_AMOUNTS: Final = frozenset({"requests", "limits"})
_AMOUNT: Final = frozenset({"sizeLimit"})


def plan(resource: DSDDeployment, context: RenderContext) -> tuple[Manifest, ...]:
    """Manifests to apply, first to last.

    What `preflight` found wrong leaves out the children it concerns and no others: a bad envelope the Deployment, a bad
    schedule also the ConfigMap.
    """
    bad_schedule = bool(schedule_problems(resource))
    bad_envelope = bad_schedule or bool(envelope_problems(resource))
    return (
        service_account(resource),
        *([] if bad_schedule else [config_map(resource, context)]),
        service(resource),
        *([] if bad_envelope else [deployment(resource, context)]),
        *extras.wanted(resource, context),
    )


def digest(manifest: Mapping[str, Any]) -> str:
    """Content hash (SHA-256, hex) that is equal for manifests that mean the same: quantities count by value."""
    canonical_text = json.dumps(_normalised(manifest), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical_text.encode()).hexdigest()


def _normalised(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        if key in _AMOUNTS:
            return {name: canonical(amount) for name, amount in value.items()}
        return {name: _normalised(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_normalised(item) for item in value]
    return canonical(value) if key in _AMOUNT else value
