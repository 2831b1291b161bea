"""What is printed as YAML comes back through the real kubectl and the real API server as the same values."""

import json
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubectl_dsd.output import to_yaml
from tools.cluster.api import ApiOnlyCluster, kubectl

pytestmark = pytest.mark.integration

NOT_WHAT_THEY_SEEM = [
    "yes", "No", "ON", "off", "y", "N", "true", "null", "Null", "~", "", " ", "  leading", "trailing ", "\t", "\n",
    "a\nb", "a\n", "\n\na", "a\r\nb", "1e3", "1E3", "1.", ".5", "0o7", "017", "0x1F", "0b1", "1_000", "+1", "-1",
    "12:30:45", "2001-01-01", "2001-12-14t21:59:43.10-05:00", ".inf", "-.INF", ".nan", "NaN", "inf", "=", "<<", "!",
    "!!str", "&a", "*a", "- a", "-", "? a", ": a", "a: b", "a:", "a #b", "#a", "%a", "@a", "`a`", "'", '"', "\\",
    "{a: b}", "[a]", ",", "|", ">", "---", "--- a", "...", "\n---\n", "a\n--- b", "\x07", "\x1b[31m", "\x7f",
    "\x85", "\xa0", "\u2028", "\u2029", "\ufeff", "ü", "日本語", "😀", "\ufffd", "\ud7ff", "é\u0301", "$(X)", "$$",
    "{{ .Values }}", "0", "00", "-0", "1e", "e1", "9223372036854775808", "1" * 40, "x" * 3000 + " y" * 3000,
]  # fmt: skip
"""Each of them is something else to one reader of YAML or another, or cannot stand plain."""

STRINGS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
KEYS = ["yes", "no", "y", "n", "on", "null", "true", "1e3", "0o7", "0x1F", "12", "1.5", "2001-01-01", "1_0"]
"""Keys that an annotation may have and that are not beyond doubt in YAML."""


def through_kubectl(kubeconfig: str, manifest: dict[str, Any]) -> Any:
    """The object as the API server would store it."""
    done = subprocess.run(
        [kubectl(), "--kubeconfig", kubeconfig, "create", "--dry-run=server", "-o", "json", "-f", "-"],
        input=to_yaml(manifest), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def deployment(strings: list[str]) -> dict[str, Any]:
    """A DSDDeployment with these strings wherever a field may hold any: values, list items, free maps."""
    return {
        "apiVersion": "dsd-operator.io/v1alpha1",
        "kind": "DSDDeployment",
        "metadata": {
            "name": "strings",
            "namespace": "default",
            "annotations": {key: strings[i % len(strings)] for i, key in enumerate(KEYS)},
        },
        "spec": {
            "model": {"name": "acme/tiny-llama"},
            "drafter": {"method": "ngram", "numSpeculativeTokens": 3, "promptLookup": {"min": 2, "max": 4}},
            "schedule": [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 3}],
            "engine": {"env": [{"name": f"V{i}", "value": text} for i, text in enumerate(strings)]},
            "podTemplate": {"metadata": {"annotations": {f"a{i}": text for i, text in enumerate(strings)}}},
        },
    }


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STRINGS, min_size=30, max_size=60))
@example(NOT_WHAT_THEY_SEEM)
def test_every_string_comes_back(cluster: ApiOnlyCluster, strings: list[str]) -> None:
    manifest = deployment(strings)
    stored = through_kubectl(str(cluster.kubeconfig), manifest)
    assert [entry.get("value", "") for entry in stored["spec"]["engine"]["env"]] == strings
    assert stored["spec"]["podTemplate"] == manifest["spec"]["podTemplate"]
    assert stored["metadata"]["annotations"] == manifest["metadata"]["annotations"]


def test_numbers_come_back(cluster: ApiOnlyCluster) -> None:
    manifest = deployment(["x"])
    values = {
        "whole": 3,
        "large": 2**53 - 1,
        "half": 0.5,
        "small": 1e-7,
        "big": 1e20,
        "yes": True,
        "list": [1, 2.5, "3"],
    }
    manifest["spec"]["drafter"]["parameters"] = values
    assert through_kubectl(str(cluster.kubeconfig), manifest)["spec"]["drafter"]["parameters"] == values
