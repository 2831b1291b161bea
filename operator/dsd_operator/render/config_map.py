"""The ConfigMap with the schedule: the truth after a restart, and the way in where the operator cannot reach a pod."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from dsd_operator.api import DSDDeployment
from dsd_operator.render.context import RenderContext
from dsd_operator.render.owner import child_metadata
from dsd_runtime.protocol import CONFIG_FILE_NAME, ConfigFile


def config_map(resource: DSDDeployment, context: RenderContext) -> dict[str, Any]:
    """Mounted as a directory, so that the kubelet refreshes it in running pods."""
    spec = resource.spec
    content = ConfigFile(revision=context.revision, ranges=spec.schedule, smoothing=spec.smoothing, auth=context.auth)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(resource),
        "data": {CONFIG_FILE_NAME: json.dumps(content.dump(), indent=2) + "\n"},
    }


def read(config_map: Mapping[str, Any]) -> ConfigFile | None:
    """The content of a live ConfigMap; None when it is missing or somebody edited it into something unreadable."""
    text = (config_map.get("data") or {}).get(CONFIG_FILE_NAME, "")
    try:
        return ConfigFile.model_validate_json(text)
    except ValidationError:
        return None
