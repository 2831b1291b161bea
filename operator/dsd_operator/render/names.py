"""Names of the children and the label value that ties pods to their resource.

A resource's name is a DNS-1123 subdomain of up to 253 characters; a Service's is a DNS-1035 label, and other tools hang
suffixes on names or copy them into labels. So a name that does not fit is altered and carries a hash of the full name.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

MAX_BASE_LENGTH: Final = 50
"""Longest child name: leaves 13 characters for what Kubernetes and others append before the limit of 63."""

MAX_GROUP_LENGTH: Final = 44
"""Longest name of a LeaderWorkerSet. Its controller names a StatefulSet for each group after it and the group's number,
and each StatefulSet's pods carry that name with a hash (11 characters) as a label."""

_MAX_LABEL_LENGTH: Final = 63
_HASH_LENGTH: Final = 10
_DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LOOKS_HASHED: Final = re.compile(rf".*-[0-9a-f]{{{_HASH_LENGTH}}}")

_TAKEN_BY_KUBERNETES: Final = frozenset({"default", "kubernetes"})
"""A ServiceAccount `default` stands in every namespace, a Service `kubernetes` in one of them."""


@dataclass(frozen=True)
class Names:
    """`base` is the name of every child but the LeaderWorkerSet, whose is `group`; `label` the value of the label
    dsd-operator.io/deployment.

    `group` always carries a hash, and another one than `base` would: what the LeaderWorkerSet's controller makes is
    called `group`, `group-0`, `group-1` and so on, Services among it, and must not meet those of any resource.
    """

    base: str
    label: str
    group: str


def names_for(resource_name: str) -> Names:
    """Names for the resource called `resource_name`: valid, deterministic, and never those of another resource."""
    return Names(_base(resource_name), _label(resource_name), _group(resource_name))


def _base(name: str) -> str:
    fits = _DNS_1035.fullmatch(name) and len(name) <= MAX_BASE_LENGTH
    if fits and name not in _TAKEN_BY_KUBERNETES and not _LOOKS_HASHED.fullmatch(name):
        return name
    return _hashed(name)


def _label(name: str) -> str:
    """The name itself where it may be a label value, so that `kubectl get pods -l` takes what the user typed."""
    # A name that looks like one of ours is hashed once more; else it could equal the altered name of another resource.
    if len(name) <= _MAX_LABEL_LENGTH and not _LOOKS_HASHED.fullmatch(name):
        return name
    return _hashed(name)


def _group(name: str) -> str:
    return _hashed(name, MAX_GROUP_LENGTH, f"{name}/group")


def _hashed(name: str, length: int = MAX_BASE_LENGTH, text: str = "") -> str:
    """Letters of `name` and a hash of it, or of `text`."""
    digest = hashlib.sha256((text or name).encode()).hexdigest()[:_HASH_LENGTH]
    letters = re.sub(r"[^a-z0-9]+", "-", name)
    if not letters[:1].isalpha():
        letters = f"d-{letters}"
    return f"{letters[: length - _HASH_LENGTH - 1].rstrip('-')}-{digest}"
