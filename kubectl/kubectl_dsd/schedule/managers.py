"""Who else sets the schedule of a resource, and what comes of it when somebody changes it here. Pure, from `metadata`.

The change itself is a merge patch, which no field manager can refuse, and it takes the field from its owners. A tool
that applies with force takes it back at its next sync; one that applies without ends in a conflict; Helm 3 patches what
differs between two versions of the chart, whatever is in the cluster. So the person is told before, by name.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dsd.cluster import FIELD_MANAGER

_FIELDS: Final = ("f:schedule", "f:smoothing")

_ARGO_CD: Final = "Argo CD"
_FLUX: Final = "Flux"
_FLUX_HELM: Final = "Flux's helm-controller"
_FLEET: Final = "Fleet"

_GITOPS: Final[Mapping[str, str]] = {
    "argocd-controller": _ARGO_CD,
    "argocd-application-controller": _ARGO_CD,
    "kustomize-controller": _FLUX,
    "helm-controller": _FLUX_HELM,
    "fleetagent": _FLEET,
}
"""Field managers that put back what differs from their source."""

_TRACKED: Final[Mapping[str, str]] = {
    "argocd.argoproj.io/tracking-id": _ARGO_CD,
    "argocd.argoproj.io/instance": _ARGO_CD,
    "kustomize.toolkit.fluxcd.io/name": _FLUX,
    "helm.toolkit.fluxcd.io/name": _FLUX_HELM,
}
"""Labels and annotations by which the same tools know their objects."""

_WHEN: Final[Mapping[str, str]] = {
    _ARGO_CD: "sets the schedule back at its next sync, with self-heal at once",
    _FLUX: "sets the schedule back at its next reconciliation, within minutes",
    _FLUX_HELM: "sets the schedule back where its drift detection is on, else with an upgrade that changes it",
    _FLEET: "sets the schedule back where correctDrift is on, else with a commit that changes it",
}

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
        elif operation == "Apply":
            yield _conflict(manager)
        elif manager == _HELM:
            yield "the schedule came with a Helm release: an upgrade that changes it sets it anew; change its values"
    for tool in sorted(tools):
        yield _gitops(tool, "")


def tools(meta: Mapping[str, Any]) -> list[str]:
    """The tools that put back what differs from their source, by their names."""
    marks = {**(meta.get("labels") or {}), **(meta.get("annotations") or {})}
    managers = {str(entry.get("manager")) for entry in meta.get("managedFields") or ()}
    by_mark = {tool for mark, tool in _TRACKED.items() if mark in marks}
    return sorted(by_mark | {tool for manager, tool in _GITOPS.items() if manager in managers})


def _gitops(tool: str, detail: str) -> str:
    return (
        f"{tool}{detail} manages this resource, and {_WHEN[tool]}: change it at the source, or tell {tool} to leave "
        "spec.schedule alone"
    )


def _conflict(manager: str) -> str:
    """What comes of it for an owner by server-side apply that does not force."""
    flag = "--force-conflicts"
    how = f"`helm upgrade {flag}`" if manager == _HELM else f"`kubectl apply --server-side {flag}`"
    return (
        f"the field manager {manager} owns the schedule by server-side apply: where it asks for another one, its next "
        f"apply ends in a conflict, and with force ({how}) it sets the schedule back; change it there too"
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
