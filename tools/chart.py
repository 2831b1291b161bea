"""Writes the chart's copy of the CRD from `crds/`: `python -m tools.chart`, or `--check` to fail on drift.

The chart renders the CRD from a template, so that an upgrade brings the new one, and marks it to be kept, so that
neither an uninstall nor a later move out of the chart takes every resource with it.
"""

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster.paths import REPOSITORY

SOURCE: Final = REPOSITORY / "crds"
TARGET: Final = REPOSITORY / "charts" / "dsd-operator" / "templates" / "crds.yaml"
KEEP: Final = {"helm.sh/resource-policy": "keep"}


def template(crds: list[dict[str, Any]]) -> str:
    """The chart's template that renders exactly these CRDs, to be kept."""
    documents = "---\n".join(yaml.safe_dump(_kept(crd), sort_keys=False, width=1000) for crd in crds)
    header = "{{- /* Generated from crds/ by `make crds`; edit the models instead. */ -}}\n"
    check = '{{- include "dsd-operator.checkCrdOwner" . }}'
    return f"{header}{{{{- if .Values.crds.install }}}}\n{check}\n{_literal(documents)}{{{{- end }}}}\n"


def _kept(crd: dict[str, Any]) -> dict[str, Any]:
    metadata = crd["metadata"]
    return {**crd, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **KEEP}}}


def _literal(text: str) -> str:
    """Braces in descriptions must come out of Helm as they went in."""
    return text.replace("{{", '{{ "{{" }}')


def sources() -> list[dict[str, Any]]:
    """The generated CRDs, in the order of their file names."""
    return [yaml.safe_load(path.read_text()) for path in sorted(Path(SOURCE).glob("*.yaml"))]


def main() -> None:
    """Write the template, or with `--check` end with a message when it differs from what would be written."""
    wanted = template(sources())
    if sys.argv[1:] != ["--check"]:
        TARGET.write_text(wanted)
    elif not TARGET.exists() or TARGET.read_text() != wanted:
        sys.exit(f"{TARGET.relative_to(REPOSITORY)} differs from crds/: run `make crds`")


if __name__ == "__main__":
    main()
