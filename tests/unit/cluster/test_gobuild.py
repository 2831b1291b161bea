"""Build keys follow what goes into a program, and a failed build leaves nothing that looks like one."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tools.cluster import gobuild, paths, shell, versions
from tools.cluster.errors import ClusterError
from tools.cluster.versions import Tool

_TOOL = Tool("thing", "thing", "example.org/thing", "1.2.3")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "package" / "go" / "thing"
    directory.mkdir(parents=True)
    (directory / "go.mod").write_text("module thing\n")
    (directory / "go.sum").write_text("sum\n")
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return directory


def test_key_changes_with_each_input(module: Path) -> None:
    found = {gobuild.build_key(_TOOL), gobuild.build_key(replace(_TOOL, ldflags="-w"))}
    for name in ("go.mod", "go.sum"):
        (module / name).write_text("other\n")
        found.add(gobuild.build_key(_TOOL))
    assert len(found) == 4
    assert gobuild.build_key(_TOOL) in found


@pytest.mark.usefixtures("module")
def test_failed_build_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str | Path], **_: object) -> str:
        if "env" in command:
            return "go1.26.0"
        output = Path(command[command.index("-o") + 1])
        output.parent.mkdir()
        output.write_text("half")
        raise ClusterError("no")

    monkeypatch.setattr(shell, "run", fail)
    with pytest.raises(ClusterError, match="no"):
        gobuild.ensure([_TOOL])
    assert not gobuild.binary(_TOOL).exists()
    assert [path for path in paths.binaries_root().iterdir() if path.is_dir()] == []


@pytest.mark.usefixtures("module")
def test_builds_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    builds = []

    def build(command: list[str | Path], **_: object) -> str:
        if "env" in command:
            return "go1.26.0"
        builds.append(command)
        output = Path(command[command.index("-o") + 1])
        output.parent.mkdir()
        output.write_text("program")
        return ""

    monkeypatch.setattr(shell, "run", build)
    killed = paths.binaries_root() / ".thing-x1y2"
    (killed / "built").mkdir(parents=True)
    gobuild.ensure([_TOOL])
    gobuild.ensure([_TOOL])
    assert len(builds) == 1
    assert not killed.exists(), "what a killed build left does not pile up"
    assert gobuild.binary(_TOOL).read_text() == "program"
    assert "[1/1] building thing 1.2.3" in capsys.readouterr().err


@pytest.mark.usefixtures("module")
def test_old_builds_are_removed_and_only_those() -> None:
    root = paths.binaries_root()
    for name in ("thing-1.0.0-0123456789", "thing-else-1.0.0-0123456789"):
        (root / name).mkdir(parents=True)
    gobuild.binary(_TOOL).parent.mkdir(parents=True)
    gobuild.remove_other_builds([_TOOL])
    assert {path.name for path in root.iterdir()} == {gobuild.binary(_TOOL).parent.name, "thing-else-1.0.0-0123456789"}


@pytest.mark.parametrize(
    "tool",
    [t for t in (*versions.ALL_TOOLS, *versions.ON_DEMAND_TOOLS) if "dsd-operator.io/" not in t.package],
    ids=lambda one: one.name,
)
def test_version_is_the_one_that_is_built(tool: Tool) -> None:
    module_file = (gobuild.module_directory(tool) / "go.mod").read_text()
    pinned = re.findall(r"^\s*(?:require )?(\S+) v(\S+)$", module_file, re.MULTILINE)
    assert [version for name, version in pinned if tool.package.startswith(name)] == [tool.version]


def test_kubernetes_is_one_version_throughout() -> None:
    module_file = (gobuild.module_directory(versions.APISERVER) / "go.mod").read_text()
    replaced = set(re.findall(r"=> k8s\.io/\S+ v(\S+)", module_file))
    assert replaced == {versions.KUBERNETES.replace("1.", "0.", 1)}


@pytest.mark.parametrize(
    "file", sorted((paths.PACKAGE / "go").glob("*/go.*")), ids=lambda one: f"{one.parent.name}-{one.name}"
)
def test_module_files_name_no_address(file: Path) -> None:
    hashes_aside = file.read_text().replace(" h1:", " ")  # a hash may begin with two slashes
    assert "://" not in hashes_aside


@pytest.mark.parametrize(
    ("version", "old"),
    [("go1.19.8", True), ("go1.20", True), ("go1.21", False), ("go1.26.2", False), ("devel go1.27-abc", False)],
)
def test_debians_own_go_is_too_old(version: str, old: bool) -> None:
    assert gobuild.too_old(version) is old


@pytest.mark.usefixtures("module")
def test_go_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\necho go1.19.8\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    with pytest.raises(ClusterError, match=r"bin/go is go1\.19\.8.*Install Go 1\.26"):
        gobuild.ensure([_TOOL])
