"""The chart renders, for a matrix of values, what is checked in. After a change: pytest tests/golden --update-golden.

The CRD is left out, and neither long texts of ConfigMaps (dashboards) nor alerting rules are written out: other tests
compare these with what they are made from.
"""

from copy import deepcopy
from pathlib import Path
from typing import Final

import pytest

from tests.chart import CHART, Manifest, helm, rendered
from tests.golden.manifest_text import manifest_text

HERE: Final = Path(__file__).parent / "chart"
VALUES: Final = sorted((HERE / "values").glob("*.yaml"))
EACH: Final = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
LONG: Final = 2000


def _shortened(manifest: Manifest) -> Manifest:
    made = deepcopy(manifest)
    if made["kind"] == "ConfigMap":
        for key, text in made.get("data", {}).items():
            made["data"][key] = "(a long text)" if len(text) > LONG else text
    if made["kind"] == "PrometheusRule":
        made["spec"]["groups"] = [group["name"] for group in made["spec"]["groups"]]
    return made


@EACH
def test_the_manifests_are_the_golden_ones(values: Path, request: pytest.FixtureRequest) -> None:
    manifests = [m for m in rendered("--values", values) if m["kind"] != "CustomResourceDefinition"]
    text = manifest_text(_shortened(manifest) for manifest in manifests)
    golden = HERE / "rendered" / values.name
    if request.config.getoption("--update-golden"):
        golden.write_text(text)
    assert golden.read_text() == text, "if the change is meant: pytest tests/golden --update-golden"


def test_there_is_no_golden_file_without_its_values() -> None:
    assert {path.name for path in (HERE / "rendered").iterdir()} == {path.name for path in VALUES}


@EACH
def test_lint_finds_nothing(values: Path) -> None:
    done = helm("lint", "--strict", CHART, "--values", values)
    assert done.returncode == 0, done.stdout + done.stderr


@EACH
def test_every_object_is_named_once_and_carries_our_labels(values: Path) -> None:
    manifests = rendered("--values", values)
    keys = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in manifests]
    assert len(keys) == len(set(keys))
    labelled = [m for m in manifests if m["kind"] != "CustomResourceDefinition" and not _is_extra(m)]
    assert [m["metadata"]["name"] for m in labelled if "helm.sh/chart" not in m["metadata"].get("labels", {})] == []


def _is_extra(manifest: Manifest) -> bool:
    """Whether it is one of `extraObjects`, which are the user's."""
    return manifest["metadata"]["name"] in ("dsd-extra", "dsd-operator-text")
