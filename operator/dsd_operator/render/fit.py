"""How a manifest fits over the live object of its name, where some fields can never change again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fit:
    """`manifest` is what the API server can take."""

    manifest: Mapping[str, Any]
    left_out: str = ""
    """What it cannot take, in words: old value, new value, way out."""
    change: str = ""
    """What it may refuse to do to the live object, in the same words."""


def as_it_is(manifest: Mapping[str, Any], _: Mapping[str, Any]) -> Fit:
    """Every field may change."""
    return Fit(manifest)
