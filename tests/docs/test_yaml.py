"""Every YAML block of the documentation and every sample is right: judged by whoever reads it, in the end.

Kubernetes objects by the API server, chart values by the chart, schedule files by the runtime, scrape configurations by
Prometheus.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dsd_runtime.config_file import parse
from tests.docs.blocks import Block, all_blocks
from tests.docs.conftest import Cluster
from tools.cluster.api import program
from tools.cluster.paths import REPOSITORY
from tools.cluster.versions import KUBERNETES
from tools.monitoring.programs import promtool

BLOCKS: Final = [block for block in all_blocks() if block.language == "yaml" and not block.reason]
_BASE: Final = REPOSITORY / "samples" / "llama-3.1-8b-eagle.yaml"
_CHART: Final = REPOSITORY / "charts" / "dsd-operator"


def _documents(block: Block) -> list[Any]:
    return [document for document in yaml.safe_load_all(block.text) if document is not None]


def _is_object(block: Block) -> bool:
    return all(isinstance(d, dict) and "apiVersion" in d and "kind" in d for d in _documents(block))


def _of(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.comment == f"yaml: {kind}"]


def _file(folder: Path, block: Block, text: str) -> Path:
    path = folder / f"{block.page.stem}-{block.line}.yaml"
    path.write_text(text)
    return path


def test_every_block_has_a_judge() -> None:
    known = [*_of("spec"), *_of("values"), *_of("schedule"), *_of("scrape")]
    assert [b.where for b in BLOCKS if b not in known and not _is_object(b)] == []


def _objects() -> Iterator[tuple[Block, Any]]:
    base = yaml.safe_load(_BASE.read_text())
    for block in _of("spec"):
        (fragment,) = _documents(block)
        yield block, base | {"spec": base["spec"] | fragment.get("spec", fragment)}
    for block in BLOCKS:
        if not block.comment.startswith("yaml: ") and _is_object(block):
            yield from ((block, document) for document in _documents(block))


@pytest.mark.integration
def test_the_api_server_takes_every_object(cluster: Cluster, tmp_path: Path) -> None:
    """As a dry run on the server: schema, CEL rules and admission, one file for each block to name it."""
    cluster.install()
    for number, (block, document) in enumerate(_objects()):
        document["metadata"].setdefault("name", f"block-{number}")
        document["metadata"].pop("namespace", None)  # it need not exist
        path = _file(tmp_path, block, "")
        path.with_stem(f"{path.stem}-{number}").write_text(yaml.safe_dump(document))
        path.unlink()
    assert list(tmp_path.iterdir())
    options = ["--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts"]
    cluster.run("kubectl", "apply", *options, "--filename", tmp_path)


@pytest.mark.parametrize("block", _of("values"), ids=lambda block: block.where)
def test_the_chart_takes_every_values_file(block: Block, tmp_path: Path) -> None:
    values = _file(tmp_path, block, block.text)
    command: list[str | Path] = [
        program("helm"),
        "template",
        "docs",
        _CHART,
        "--values",
        values,
        "--kube-version",
        KUBERNETES,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", _of("schedule"), ids=lambda block: block.where)
def test_the_runtime_takes_every_schedule_file(block: Block) -> None:
    assert parse(block.text.encode()).ranges


@pytest.mark.parametrize("block", _of("scrape"), ids=lambda block: block.where)
def test_prometheus_takes_every_scrape_configuration(block: Block, tmp_path: Path) -> None:
    """All but the discovery in Kubernetes, which Debian's build of Prometheus does without."""
    content = yaml.safe_load(block.text)
    for job in content.get("scrape_configs", []):
        job.pop("kubernetes_sd_configs", None)
    path = _file(tmp_path, block, yaml.safe_dump(content))
    done = subprocess.run([promtool(), "check", "config", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
