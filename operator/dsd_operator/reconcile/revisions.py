"""Which revision stands for the schedule in this pass: the ConfigMap's, the one minted a moment ago, or a new one."""

from collections.abc import Iterable, Mapping
from typing import Any

from dsd_operator.api import DSDDeployment
from dsd_operator.reconcile.memory import Memory, Minted
from dsd_operator.render.config_map import read
from dsd_operator.render.revision import next_revision, owner_of
from dsd_runtime.protocol import ConfigFile, Revision


def choose(
    resource: DSDDeployment,
    config_map: Mapping[str, Any] | None,
    seen: Iterable[Revision],
    memory: Memory,
    now_ms: int,
) -> Revision:
    """The revision for the resource's schedule; remembered, so that a ConfigMap that cannot be written, or was deleted,
    does not make every pass mint another one."""
    stored = read(config_map) if config_map is not None else None
    current = _current(stored, memory.minted)
    ranges, smoothing = resource.spec.schedule, resource.spec.smoothing
    revision = next_revision(owner_of(resource), ranges, current, seen, now_ms, smoothing)
    if memory.minted is None or memory.minted.config.revision != revision:
        memory.minted = Minted(ConfigFile(revision=revision, ranges=ranges, smoothing=smoothing), stored)
    return revision


def _current(stored: ConfigFile | None, minted: Minted | None) -> ConfigFile | None:
    """The stored file, unless it is the very one that ours was to replace: then ours has not arrived yet."""
    if minted is not None and (stored is None or _same(stored, minted.replaced)):
        return minted.config
    return stored


def _same(one: ConfigFile, other: ConfigFile | None) -> bool:
    return other is not None and _without_auth(one) == _without_auth(other)


def _without_auth(file: ConfigFile) -> ConfigFile:
    """The schedule in the file; keys are rotated on their own."""
    return file.model_copy(update={"auth": None})
