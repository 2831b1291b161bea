"""A claim that the resource names and the operator did not make: what is wrong with it, as far as it can be seen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dsd_operator.api import DSDDeployment

_MANY_PODS: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})


@dataclass(frozen=True)
class ExistingClaim:
    """The claim called `name`; `live` is None when there is none."""

    name: str
    live: Mapping[str, Any] | None

    @property
    def fault(self) -> str | None:
        """Why no pod can start with it."""
        place = f"spec.cache.existingClaim: the claim {self.name}"
        if self.live is None:
            return f"{place} does not exist in this namespace; make it, or name another one"
        if self.live.get("status", {}).get("phase") == "Lost":
            return f"{place} has lost its volume; restore the volume, or name another claim"
        if self.live["metadata"].get("deletionTimestamp"):
            return f"{place} is being deleted, so no new pod can mount it; name another one"
        return None


def claim_notes(resource: DSDDeployment, claim: ExistingClaim | None) -> Iterator[str]:
    """What may keep pods from starting: the modes of a claim say on how many nodes it can be mounted."""
    if claim is None or claim.live is None:
        return
    modes = claim.live["spec"].get("accessModes") or []
    spec = resource.spec
    pods = spec.replicas * spec.engine.nodes + (spec.rollout.max_surge if spec.replicas else 0)
    if pods > 1 and not _MANY_PODS & set(modes):
        yield (
            f"the claim {claim.name} is {', '.join(modes)}, and up to {pods} pods mount it: those on another node than "
            "the first wait for ever; use a claim that is ReadWriteMany, or one pod"
        )
