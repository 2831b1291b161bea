"""The commands of the documentation that need a real engine: on the node, beside the engine that the tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import commands
from tests.docs.session import Session
from tests.runtime.server import free_port
from tools.cluster.api import full_node_kubeconfig
from tools.cluster.paths import REPOSITORY
from tools.testbed.handle import Handle, identity

pytestmark = pytest.mark.e2e

PAGES = commands("node")


@pytest.fixture
def kept(shared: Handle) -> Iterator[Handle]:
    """The engine; what the page changed of it is changed back, and it must still be the same one."""
    before, pod = shared.resource()["spec"]["schedule"], identity(shared.pod())
    yield shared
    shared.patch({"schedule": before})
    assert identity(shared.pod()) == pod


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands(page: Path, kept: Handle, tmp_path: Path) -> None:
    content = yaml.safe_load(full_node_kubeconfig().read_text())
    for context in content["contexts"]:
        context["context"]["namespace"] = kept.namespace
    kubeconfig = tmp_path / ".kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(content))
    port = free_port()
    names = {
        r"(?<![\w.-])llama(?![\w.-])": kept.name,
        r"\b(service/\S+) 8000\b": rf"\g<1> {port}:8000",
        r"\blocalhost:8000\b": f"localhost:{port}",
    }
    Session(tmp_path, kubeconfig, names).run(PAGES[page])
