"""The commands of the documentation that need an API server and no pods."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.blocks import commands
from tests.docs.conftest import Cluster
from tests.docs.session import Session
from tools.cluster.paths import REPOSITORY

pytestmark = pytest.mark.integration

PAGES = commands("api")
_RELEASE: Final = re.compile(r"helm (install|upgrade|uninstall|rollback|get manifest) dsd-operator\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands(page: Path, cluster: Cluster, tmp_path: Path) -> None:
    first = _RELEASE.search("".join(block.text for block in PAGES[page]))
    cluster.uninstall() if first and first[1] == "install" else cluster.install()
    Session(tmp_path, cluster.namespace(tmp_path)).run(PAGES[page])
