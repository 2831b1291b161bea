"""`make release-check` on this checkout: everything is built, twice, and installed in clean environments.

Left out are the checks of a tree in which somebody works: what is not committed, and what is not generated yet, which
`make check-generated` says.
"""

import json
import re
from pathlib import Path

import pytest

from tools.release.__main__ import main
from tools.release.checks import CHECKS
from tools.release.projects import PROJECTS

pytestmark = pytest.mark.integration

_LEFT_OUT = ["tree", "generated"]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what the check built."""
    return tmp_path_factory.mktemp("release") / "dist"


def test_this_checkout_is_fit_for_a_release(checked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--dist", str(checked), "check", "--skip", *_LEFT_OUT])
    told = capsys.readouterr().out
    assert status == 0, told
    passed = re.findall(r"^passed  (\w+)", told, re.MULTILINE)
    assert passed == [name for name in CHECKS if name not in _LEFT_OUT]


def test_a_release_is_all_there(checked: Path) -> None:
    version = PROJECTS[0].version()
    wanted = {f"{p.stem}-{version}{end}" for p in PROJECTS for end in ("-py3-none-any.whl", ".tar.gz")}
    wanted |= {f"{p.name}-wheel.cdx.json" for p in PROJECTS}
    wanted |= {f"dsd-{image}-image.cdx.json" for image in ("operator", "runtime")}
    assert {path.name for path in checked.iterdir()} == wanted | {f"dsd-operator-{version}.tgz"}


def test_a_bill_says_what_it_is_of_and_what_that_needs(checked: Path) -> None:
    bill = json.loads((checked / "dsd-operator-image.cdx.json").read_text())
    assert bill["metadata"]["component"]["type"] == "container"
    (subject,) = [entry for entry in bill["dependencies"] if entry["ref"] == "subject"]
    assert {"base", f"dsd-operator=={PROJECTS[0].version()}"} <= set(subject["dependsOn"])
    licensed = [component for component in bill["components"] if component.get("licenses")]
    assert len(licensed) >= len(bill["components"]) - 2  # the base image, and at most one package that says none
