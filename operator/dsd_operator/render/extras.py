"""Children that a resource may do without: each is made where the spec asks for it, and deleted where it does not.

The table is the one place that knows them: `plan` renders them, `reconcile.optional` brings and drops them, `status`
tells what depends on them. A new one is a file beside this one and an entry here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render import cache, http_route, inference_pool, network_policy, pod_disruption_budget, pod_monitor
from dsd_operator.render.context import RenderContext
from dsd_operator.render.fit import Fit, as_it_is
from dsd_operator.render.owner import child_metadata


@dataclass(frozen=True)
class Extra:
    """One kind of child that is not always there."""

    api_version: str
    kind: str
    wanted: Callable[[DSDDeployment], bool]
    render: Callable[[DSDDeployment, RenderContext], dict[str, Any]]
    advice: str = ""
    """What to do where the cluster does not know the kind; empty for kinds that every cluster has."""
    needed_by_pods: bool = False
    """Whether pods cannot start without it. If not, only the condition Ready tells that it is missing."""
    leads_to: str = ""
    """The kind of another child that it leads clients to, where the resource asks for that one: a route may lead
    nowhere, or to a stranger's, for no moment."""
    keeps: bool = False
    """Whether it stays when it is no longer wanted, because of what is in it; it still goes with the resource."""
    fit: Callable[[Mapping[str, Any], Mapping[str, Any]], Fit] = as_it_is
    """The manifest as the API server can take it over the live object."""

    def identity(self, resource: DSDDeployment) -> dict[str, Any]:
        """apiVersion, kind and metadata: enough to find it and to tell whose it is."""
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": child_metadata(resource)}


EXTRAS: Final = (
    Extra(
        cache.API_VERSION,
        cache.KIND,
        wanted=cache.wanted,
        render=lambda resource, _: cache.cache_claim(resource),
        fit=cache.fitted,
        needed_by_pods=True,
        keeps=True,
    ),
    Extra(
        pod_monitor.API_VERSION,
        pod_monitor.KIND,
        wanted=lambda resource: resource.spec.monitoring.pod_monitor.enabled,
        render=lambda resource, _: pod_monitor.pod_monitor(resource),
        advice="install the CRDs of the Prometheus operator, or set spec.monitoring.podMonitor.enabled to false",
    ),
    Extra(
        pod_disruption_budget.API_VERSION,
        pod_disruption_budget.KIND,
        wanted=lambda resource: resource.spec.pod_disruption_budget.enabled,
        render=lambda resource, _: pod_disruption_budget.pod_disruption_budget(resource),
    ),
    Extra(
        network_policy.API_VERSION,
        network_policy.KIND,
        wanted=lambda resource: resource.spec.network_policy.enabled,
        render=network_policy.network_policy,
    ),
    Extra(
        inference_pool.API_VERSION,
        inference_pool.KIND,
        wanted=inference_pool.is_wanted,
        render=lambda resource, _: inference_pool.inference_pool(resource),
        advice=(
            "install the CRDs of the Gateway API Inference Extension (v1.0 or newer), or set "
            "spec.gateway.inferencePool.enabled to false"
        ),
    ),
    Extra(
        http_route.API_VERSION,
        http_route.KIND,
        wanted=http_route.is_wanted,
        render=lambda resource, _: http_route.http_route(resource),
        leads_to=inference_pool.KIND,
        advice="install the CRDs of the Gateway API, or set spec.gateway.httpRoute.enabled to false",
    ),
)

BY_KIND: Final = {extra.kind: extra for extra in EXTRAS}


def wanted(resource: DSDDeployment, context: RenderContext) -> tuple[dict[str, Any], ...]:
    """Manifests of those that the resource asks for."""
    return tuple(extra.render(resource, context) for extra in EXTRAS if extra.wanted(resource))


def unwanted(resource: DSDDeployment) -> tuple[dict[str, Any], ...]:
    """Identities of those that it did without, but may have had before, and that do not stay for what is in them."""
    return tuple(extra.identity(resource) for extra in EXTRAS if not (extra.wanted(resource) or extra.keeps))
