"""Every rendered object fits the schema of the API server that the tests run, unknown fields refused: kubeconform."""

import json
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.chart import NAMESPACE, template
from tests.contract.conftest import run_kubectl
from tools import kubeconform
from tools.cluster.paths import REPOSITORY
from tools.prometheus_operator import crds
from tools.testbed.waiting import wait_for

VALUES: Final = sorted((REPOSITORY / "tests" / "golden" / "chart" / "values").glob("*.yaml"))
SAMPLES: Final = sorted((REPOSITORY / "samples").glob("*.yaml"))
MONITORING: Final = ("servicemonitors", "prometheusrules")
DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, labels: {a: b}}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: a, image: b}]}
"""


@pytest.fixture(scope="module")
def schemas(api_server: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the API server publishes, our CRD included, and the Prometheus operator's CRDs."""
    folder = tmp_path_factory.mktemp("schemas")

    def ours_is_there() -> bool:
        kubeconform.write(json.loads(run_kubectl(api_server, "get", "--raw", "/openapi/v2")), folder)
        return (folder / "dsd-operator.io_v1alpha1_dsddeployment.json").exists()

    for crd in crds.files(MONITORING):
        kubeconform.write_crd(yaml.safe_load(crd.read_text()), folder)
    wait_for("the API server to publish the CRD's schema", ours_is_there, bool, 30)
    return folder


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_the_chart_conforms(values: Path, schemas: Path) -> None:
    assert kubeconform.problems(template("--values", values).stdout, schemas) == []


@pytest.fixture(scope="module")
def prepared(api_server: Path) -> Path:
    """The API server with the namespaces that the values name, and the kinds of the Prometheus operator."""
    crds.install(api_server, MONITORING)
    for namespace in (NAMESPACE, "team-a", "team-b", "team-c"):
        run_kubectl(api_server, "create", "namespace", namespace)
    return api_server


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_the_api_server_takes_all_that_is_rendered(values: Path, prepared: Path, tmp_path: Path) -> None:
    """More than a schema says: selectors that match, names that are valid, quantities that are sound."""
    manifests = tmp_path / "manifests.yaml"
    manifests.write_text(template("--values", values).stdout)
    run_kubectl(prepared, "apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", str(manifests))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_conforms(sample: Path, schemas: Path) -> None:
    assert kubeconform.problems(sample.read_text(), schemas) == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("image: b", "image: b, imagee: c", "imagee"),
        ("image: b", "image: 1", "want string"),
        ("  selector: {matchLabels: {a: b}}\n", "", "selector"),
        ("kind: Deployment", "kind: Deploymentt", "could not find schema"),
        ("labels: {a: b}}\nspec", "labels: {a: b, a: c}}\nspec", "already set"),
    ],
)
def test_a_mistake_is_found(before: str, after: str, words: str, schemas: Path) -> None:
    assert kubeconform.problems(DEPLOYMENT, schemas) == []
    assert before in DEPLOYMENT
    (found,) = kubeconform.problems(DEPLOYMENT.replace(before, after), schemas)
    assert words in found
