"""The claim for weights and compiled code: the one that the operator makes, and where pods find either kind.

The claim is kept when the resource no longer asks for it, because of what is in it, and goes with the resource. Its
size, class and mode reach no pod.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsd_operator.api import DSDDeployment
from dsd_operator.api.cache import WAY_OUT
from dsd_operator.api.quantity import parse
from dsd_operator.render.fit import Fit
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import child_metadata

API_VERSION: Final = "v1"
KIND: Final = "PersistentVolumeClaim"


def claim_name(resource: DSDDeployment) -> str | None:
    """The claim that pods mount; None without one."""
    cache = resource.spec.cache
    if cache.existing_claim is not None:
        return cache.existing_claim
    return names_for(resource.metadata.name).base if wanted(resource) else None


def wanted(resource: DSDDeployment) -> bool:
    """Whether the operator makes the claim."""
    return resource.spec.cache.size is not None and resource.spec.cache.existing_claim is None


def cache_claim(resource: DSDDeployment) -> dict[str, Any]:
    """The claim; the resource wants one."""
    cache = resource.spec.cache
    storage_class = {} if cache.storage_class is None else {"storageClassName": cache.storage_class}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": child_metadata(resource),
        "spec": {
            "accessModes": [cache.mode],
            "resources": {"requests": {"storage": cache.size}},
            **storage_class,
        },
    }


def fitted(claim: Mapping[str, Any], live: Mapping[str, Any]) -> Fit:
    """`claim` as the API server can take it over `live`.

    A claim can only grow, and only once it has its volume. One that is larger than asked was grown by hand, and is left
    alone; without a word, because nobody misses anything.
    """
    spec, there = dict(claim["spec"]), live["spec"]
    has, asked = _storage(there), _storage(spec)
    bound = live.get("status", {}).get("phase") == "Bound"
    problems = list(_unchangeable(spec, there))
    for field in ("accessModes", "storageClassName"):
        if field in spec and field in there:
            spec[field] = there[field]
    if parse(has) < parse(asked) and not bound:
        problems.append(f"cache.size is {asked}, the claim has {has}, and that cannot change before it is bound")
    if parse(has) > parse(asked) or not bound:
        spec["resources"] = {"requests": {"storage": has}}
    growth = f"cache.size was to grow from {has} to {asked}; {WAY_OUT}" if parse(has) < parse(asked) else ""
    return Fit({**claim, "spec": spec}, f"{'; '.join(problems)}; {WAY_OUT}" if problems else "", growth)


def _unchangeable(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    ours, theirs = wanted["accessModes"], live.get("accessModes") or []
    if ours != theirs:
        yield f"cache.accessMode is {', '.join(ours)}, the claim has {', '.join(theirs)}, and that cannot change"
    asked, has = wanted.get("storageClassName"), live.get("storageClassName")
    # The API server fills in the default class, also later; one that is not asked for is never wrong.
    if asked is not None and has is not None and asked != has:
        yield f"cache.storageClass is {asked!r}, the claim has {has!r}, and that cannot change"


def _storage(spec: Mapping[str, Any]) -> Any:
    return spec["resources"]["requests"]["storage"]
