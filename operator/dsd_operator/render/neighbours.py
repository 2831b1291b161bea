"""Who reaches the engines besides their clients: the operator itself, and what reads their metrics. For policies.

Known from the operator's settings, which the chart writes; the same for all resources.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.render.labels import NAME_LABEL

OPERATOR_NAME: Final = "dsd-operator"
"""Name label of the operator's pod, and the namespace that the documentation installs it in."""


@dataclass(frozen=True)
class Neighbours:
    """The operator's pod by namespace and labels; `monitoring` as peers of a NetworkPolicy."""

    operator_namespace: str = OPERATOR_NAME
    operator_labels: Mapping[str, str] = field(default_factory=lambda: {NAME_LABEL: OPERATOR_NAME})
    monitoring: tuple[Mapping[str, Any], ...] = ()
