"""`deploy` of a compose service: what it asks of a machine, as requests and limits of the pod."""

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dsd.convert.forms import unread
from kubectl_dsd.convert.forms.docker import quantity
from kubectl_dsd.convert.forms.loose import items, mapping, mappings
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.report import Report

_READ: Final = ("replicas", "resources", "labels", "endpoint_mode", "mode")
_ROLLOUT: Final = ("update_config", "rollback_config", "restart_policy")
_SIDES: Final = {"limits": "limits", "reservations": "requests"}


def read(service: Mapping[str, Any], launch: Launch, report: Report) -> None:
    """Replicas, resources and GPUs into `launch`; the rest is told."""
    deploy = mapping(service.get("deploy"))
    if isinstance(replicas := deploy.get("replicas"), int):
        launch.replicas = replicas
    if deploy.get("mode") not in (None, "replicated"):
        report.lose("deploy.mode", "one engine on every machine is not what the operator runs; set replicas")
    for key in _ROLLOUT:
        if deploy.get(key):
            report.note(f"deploy.{key}", "left out: the operator rolls out and restarts by itself (spec.rollout)")
    unread.tell(deploy, (*_READ, *_ROLLOUT), "deploy", report)
    resources = mapping(deploy.get("resources"))
    unread.tell(resources, tuple(_SIDES), "deploy.resources", report)
    for side, name in _SIDES.items():
        _amounts(mapping(resources.get(side)), name, f"deploy.resources.{side}", launch, report)
    launch.devices = _devices(service, report)


def _amounts(amounts: Mapping[str, Any], side: str, path: str, launch: Launch, report: Report) -> None:
    for key, resource in (("memory", "memory"), ("cpus", "cpu")):
        if value := amounts.get(key):
            text = quantity(str(value)) if key == "memory" else str(value)
            launch.resources.setdefault(side, {})[resource] = text
    known = ("memory", "cpus", "devices") if side == "requests" else ("memory", "cpus")
    unread.tell(amounts, known, path, report)


def _devices(service: Mapping[str, Any], report: Report) -> int | None:
    """GPUs of `deploy.resources.reservations.devices`, or of the short form `gpus`."""
    if service.get("gpus") == "all":
        return -1
    reserved = mapping(mapping(mapping(service.get("deploy")).get("resources")).get("reservations"))
    found = [d for d in mappings(reserved.get("devices")) if _is_gpu(d, report)]
    found += mappings(service.get("gpus"))
    counts = [_count(device) for device in found]
    if counts:
        return -1 if -1 in counts else sum(counts)
    return -1 if service.get("runtime") == "nvidia" else None


def _is_gpu(device: Mapping[str, Any], report: Report) -> bool:
    if device.get("driver") in (None, "nvidia", "cdi") and (
        device.get("driver") or {"gpu", "nvidia"} & {str(c) for c in items(device.get("capabilities"))}
    ):
        return True
    report.lose(
        "deploy.resources.reservations.devices",
        f"driver {device.get('driver')}: only NVIDIA's GPUs are counted; ask for the device in spec.resources.limits",
    )
    return False


def _count(device: Mapping[str, Any]) -> int:
    if ids := items(device.get("device_ids")):
        return len(ids)
    count = device.get("count", "all")
    return int(count) if str(count).isdigit() else -1
