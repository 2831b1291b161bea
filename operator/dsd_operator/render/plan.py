"""The plan: every child of a resource in apply order. The pure heart of a reconcile pass."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.api.quantity import by_value
from dsd_operator.render import extras
from dsd_operator.render.config_map import config_map
from dsd_operator.render.context import RenderContext
from dsd_operator.render.preflight import envelope_problems, schedule_problems
from dsd_operator.render.service import service
from dsd_operator.render.service_account import service_account
from dsd_operator.render.workload import workload

Manifest = dict[str, Any]


def plan(resource: DSDDeployment, context: RenderContext) -> tuple[Manifest, ...]:
    """Manifests to apply, first to last.

    What `preflight` found wrong leaves out the children it concerns and no others: a bad envelope the workload, a bad
    schedule also the ConfigMap.
    """
    bad_schedule = bool(schedule_problems(resource))
    bad_envelope = bad_schedule or bool(envelope_problems(resource))
    return (
        service_account(resource),
        *([] if bad_schedule else [config_map(resource, context)]),
        service(resource),
        *([] if bad_envelope else [workload(resource, context)]),
        *extras.wanted(resource, context),
    )


def digest(manifest: Mapping[str, Any]) -> str:
    """Content hash (SHA-256, hex) that is equal for manifests that mean the same: quantities count by value."""
    canonical_text = json.dumps(by_value(manifest), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical_text.encode()).hexdigest()
