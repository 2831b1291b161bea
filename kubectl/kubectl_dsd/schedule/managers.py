"""Who else sets the schedule of a resource, and would set it back. Pure, from `metadata`.

The change itself is a merge patch, which no field manager can refuse: a manager that applies the field notices at its
next sync. So the person is told before, by name.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dsd.cluster import FIELD_MANAGER

_FIELDS: Final = ("f:schedule", "f:smoothing")

_GITOPS: Final[Mapping[str, str]] = {
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "fleetagent": "Fleet",
}
"""Field managers that put back what differs from their source, within minutes."""

_TRACKED: Final[Mapping[str, str]] = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
"""Labels and annotations by which the same tools know their objects."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Where `kubectl apply` remembers what it applied; it stays when somebody else takes the field."""

_HELM: Final = "helm"


def warnings(deployment: Mapping[str, Any]) -> list[str]:
    """What the person should know before the schedule is changed."""
    return list(dict.fromkeys(_warnings(deployment["metadata"])))


def _warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    marks = {**(meta.get("labels") or {}), **(meta.get("annotations") or {})}
    tools = {tool for mark, tool in _TRACKED.items() if mark in marks}
    if '"schedule"' in marks.get(_LAST_APPLIED, ""):
        yield "the schedule came with `kubectl apply`: the next apply of that file sets it back; change it too"
    for manager, operation in owners(meta):
        if manager in _GITOPS:
            tools.discard(_GITOPS[manager])
            yield _gitops(_GITOPS[manager], f" (field manager {manager})")
        elif manager == _HELM:
            yield "the schedule came with a Helm release: its next upgrade sets it back; change its values too"
        elif operation == "Apply":
            yield f"the field manager {manager} applies the schedule, and may set it back: change it there too"
    for tool in sorted(tools):
        yield _gitops(tool, "")


def _gitops(tool: str, detail: str) -> str:
    return (
        f"{tool}{detail} manages this resource, and sets the schedule back at its next sync: change it in Git, or tell "
        f"{tool} to leave spec.schedule alone"
    )


def owners(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(manager, operation) of those that own the schedule or its smoothing, other than this command."""
    return [
        (str(entry.get("manager")), str(entry.get("operation")))
        for entry in meta.get("managedFields") or ()
        if _owns(entry) and entry.get("manager") != FIELD_MANAGER
    ]


def _owns(entry: Mapping[str, Any]) -> bool:
    spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
    return any(field in spec for field in _FIELDS)
