"""Changes of what is stored: those that the API server must refuse, with the words that tell what to do, and others."""

from typing import Final

from tests.contract.admission import Case

_CLAIM: Final = "spec: {cache: {size: 100Gi, storageClass: fast}}"
_BALANCER: Final = "spec: {service: {type: LoadBalancer, loadBalancerClass: a}}"

REFUSED: Final = (
    (_CLAIM, Case("claim-shrinks", "spec: {cache: {size: 50Gi, storageClass: fast}}", "its size is 100Gi, and was to")),
    (_CLAIM, Case("claim-of-another-class", "spec: {cache: {size: 100Gi, storageClass: slow}}", "it is fast, and was")),
    (_CLAIM, Case("claim-of-the-default-class", "spec: {cache: {size: 100Gi}}", "was to become the default class")),
    (
        _CLAIM,
        Case(
            "claim-of-another-mode",
            "spec: {cache: {size: 100Gi, storageClass: fast, accessMode: ReadWriteMany}}",
            "accessMode of a claim cannot change: it is ReadWriteOnce",
        ),
    ),
    (
        _BALANCER,
        Case(
            "balancer-of-another-class",
            "spec: {service: {type: LoadBalancer, loadBalancerClass: b}}",
            "set another type first, then LoadBalancer with the new class",
        ),
    ),
)
"""What is stored, and what it must not become."""

TAKEN: Final = (
    (_CLAIM, Case("claim-grows", "spec: {cache: {size: 0.2Ti, storageClass: fast}}")),
    (_CLAIM, Case("claim-goes", "spec: {}")),
    (_CLAIM, Case("claim-of-the-users", "spec: {cache: {existingClaim: mine}}")),
    (_BALANCER, Case("balancer-goes", "spec: {service: {type: ClusterIP}}")),
    ("spec: {}", Case("balancer-comes", _BALANCER)),
)
