"""The Dockerfile keeps its promises: an unprivileged user, hash-checked dependencies, code last, bases by argument."""

import re

import pytest

from tools.cluster import dockerfile
from tools.cluster.paths import REPOSITORY
from tools.cluster.project_images import TARGETS

_TEXT = (REPOSITORY / "Dockerfile").read_text()
_JOINED = _TEXT.replace("\\\n", " ")


def _stage(target: str) -> list[str]:
    """The instructions of the stage called `target`."""
    part = re.split(r"^FROM ", _JOINED, flags=re.MULTILINE)
    (found,) = (stage for stage in part if stage.splitlines()[0].endswith(f" AS {target}"))
    return [line for line in found.splitlines()[1:] if line and not line.startswith("#")]


@pytest.mark.parametrize("target", TARGETS)
def test_the_last_user_is_numeric_and_unprivileged(target: str) -> None:
    """Numeric, so that the kubelet can check runAsNonRoot."""
    users = [line.split()[1] for line in _stage(target) if line.startswith("USER ")]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_every_lock_is_installed_with_hashes() -> None:
    commands = re.split(r"&&|\|\||\n", _JOINED)
    installs = [command for command in commands if re.search(r" install .*-r ", command)]
    assert len(installs) == 3
    assert [line for line in installs if "--require-hashes" not in line or "--no-deps" not in line] == []


@pytest.mark.parametrize("target", TARGETS)
def test_code_comes_after_dependencies(target: str) -> None:
    lines = _stage(target)
    dependencies = next(i for i, line in enumerate(lines) if "--require-hashes" in line)
    code = next(i for i, line in enumerate(lines) if line.startswith("COPY --from="))
    assert dependencies < code


def test_the_runtime_is_made_without_the_operator_and_the_operator_without_vllm() -> None:
    runtime, operator = (dockerfile.inputs(_TEXT, target) for target in ("runtime", "operator"))
    assert "operator" not in runtime.paths
    assert "runtime" in runtime.paths
    assert {"operator", "runtime"} <= operator.paths
    assert "VLLM_IMAGE}" not in operator.text


def test_bases_are_arguments() -> None:
    bases = re.findall(r"^FROM (\S+)", _TEXT, re.MULTILINE)
    assert {base for base in bases if base.startswith("$")} == {"${PYTHON_IMAGE}", "${VLLM_IMAGE}"}


@pytest.mark.parametrize("target", TARGETS)
def test_where_it_comes_from_costs_no_layer(target: str) -> None:
    """Each commit has another revision: its arguments come after everything that is run or copied."""
    lines = _stage(target)
    origin = next(i for i, line in enumerate(lines) if line.startswith("ARG REVISION"))
    assert {line.split()[0] for line in lines[origin:]} == {"ARG", "LABEL"}


@pytest.mark.parametrize("target", TARGETS)
def test_notices_are_in_the_image(target: str) -> None:
    assert "COPY LICENSE THIRD-PARTY.md /licenses/" in _stage(target)
