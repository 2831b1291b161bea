"""The text of golden manifests: made for reading a diff."""

from collections.abc import Iterable
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Long texts as blocks, lists indented, no anchors."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def manifest_text(manifests: Iterable[Any]) -> str:
    """The manifests as YAML documents, keys in the order that they have."""
    return yaml.dump_all(manifests, Dumper=_Dumper, sort_keys=False, width=120)
