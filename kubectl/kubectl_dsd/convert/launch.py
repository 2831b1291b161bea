"""One engine as an input describes it, before anything is decided: what all forms are read into."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variable:
    """One environment variable. `value` is None where the input names it only; `source` is a Pod's `valueFrom`."""

    name: str
    value: str | None = None
    source: dict[str, Any] | None = None


@dataclass
class Launch:
    """Arguments of `vllm serve` (the model among them), variables, and the surroundings in the resource's own shape."""

    form: str
    arguments: list[str]
    env: list[Variable] = field(default_factory=list)
    name: str | None = None
    namespace: str | None = None
    image: str | None = None
    replicas: int | None = None
    resources: dict[str, Any] = field(default_factory=dict)
    pod_template: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    """Further fields of the spec: sharedMemory, startup, rollout."""
    engine: dict[str, Any] = field(default_factory=dict)
    """Further fields of spec.engine: imagePullPolicy."""
    devices: int | None = None
    """GPUs that the input asks for; None where it does not say, -1 for all of a machine."""
