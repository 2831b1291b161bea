"""The dashboards inside the chart: one ConfigMap each, found by the sidecar, with every brace as it was."""

import json
import subprocess
from typing import Any

import pytest
import yaml

from tools.cluster.api import program
from tools.cluster.versions import KUBERNETES
from tools.dashboards import grafana
from tools.testbed.install import CHART

MAX_BYTES = 1024 * 1024
"""What a ConfigMap may hold."""


def config_maps(*values: str, release: str = "dsd-operator") -> dict[str, dict[str, Any]]:
    """The dashboards' ConfigMaps by the files they hold."""
    sets = [word for value in values for word in ("--set-json", value)]
    where = ["--namespace", "here", "--kube-version", KUBERNETES]
    command = [str(program("helm")), "template", release, str(CHART), *where, *sets]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    documents = [d for d in yaml.safe_load_all(done.stdout) if d and d["kind"] == "ConfigMap"]
    return {file: d for d in documents for file in d["data"] if file.endswith(".json")}


def test_each_dashboard_comes_out_as_it_is() -> None:
    found = config_maps()
    assert set(found) == {f"{name}.json" for name in grafana.names()}
    for file, config_map in found.items():
        text = config_map["data"][file]
        assert text == (grafana.FOLDER / file).read_text()
        assert len(text.encode()) < MAX_BYTES
        assert config_map["metadata"]["namespace"] == "here"
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert "annotations" not in config_map["metadata"]
    legends = {t["legendFormat"] for p in grafana.panels(json.loads(found["dsd-fleet.json"]["data"]["dsd-fleet.json"]))
               for t in p["targets"]}  # fmt: skip
    assert "{{dsd_namespace}}/{{dsd_name}}" in legends


def test_folder_labels_and_namespace_are_values() -> None:
    found = config_maps('dashboards.folder="DSD"', 'dashboards.labels={"shown": "yes"}', 'dashboards.namespace="there"')
    for config_map in found.values():
        meta = config_map["metadata"]
        assert meta["annotations"] == {"grafana_folder": "DSD"}
        assert (meta["labels"]["shown"], meta["namespace"]) == ("yes", "there")
        assert meta["labels"]["app.kubernetes.io/name"] == "dsd-operator"


def test_a_second_release_goes_without() -> None:
    assert config_maps("dashboards.enabled=false") == {}


@pytest.mark.parametrize("release", ["dsd-operator", "another"])
def test_two_releases_in_one_namespace_do_not_share_a_name(release: str) -> None:
    names = {d["metadata"]["name"] for d in config_maps(release=release).values()}
    prefix = "dsd-operator" if release == "dsd-operator" else f"{release}-dsd-operator"
    assert names == {f"{prefix}-{name}" for name in grafana.names()}
