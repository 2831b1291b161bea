"""Names of images follow their inputs; outdated ones go; a user's cluster has the user's images."""

import os
import subprocess
from pathlib import Path

import pytest

from tools.cluster import (
    base_images,
    buildah,
    container_runtime,
    debian,
    full_node,
    image_cleanup,
    images,
    paths,
    project_images,
    registry,
)
from tools.cluster.base_images import BaseImages
from tools.cluster.errors import ClusterError

_BASES = BaseImages(python="host/python:1", vllm="host/vllm:1")
_DOCKERFILE = """\
ARG PYTHON_IMAGE
ARG VLLM_IMAGE
FROM ${PYTHON_IMAGE} AS operator
COPY operator pyproject.toml ./
FROM ${VLLM_IMAGE} AS runtime
COPY runtime ./
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text(_DOCKERFILE)
    for name in ("operator/a.py", "runtime/b.py", "pyproject.toml", "docs/c.md", ".gitignore"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("__pycache__/\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def names(tree: Path, bases: BaseImages = _BASES) -> dict[str, str]:
    return {target: project_images.describe(target, bases, tree).reference for target in project_images.TARGETS}


def test_only_the_image_whose_input_changed_gets_a_new_name(tree: Path) -> None:
    before = names(tree)
    (tree / "docs/c.md").write_text("other")
    (tree / "operator/__pycache__").mkdir()
    (tree / "operator/__pycache__/a.pyc").write_text("compiled")
    assert names(tree) == before
    (tree / "operator/new.py").write_text("new")
    after = names(tree)
    assert after["operator"] != before["operator"]
    assert after["runtime"] == before["runtime"]


def test_executable_bit_and_base_image_count(tree: Path) -> None:
    before = names(tree)
    (tree / "runtime/b.py").chmod(0o755)
    assert names(tree)["runtime"] != before["runtime"]
    other = names(tree, BaseImages(python=_BASES.python, vllm="host/vllm:2"))
    assert other["operator"] == before["operator"]
    assert other["runtime"] != before["runtime"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_checkout_of_another_user(tree: Path) -> None:
    before = names(tree)
    for path in (tree, tree / ".git"):
        os.chown(path, 65534, 65534)
    assert names(tree) == before


def test_missing_path_is_named(tree: Path) -> None:
    (tree / "pyproject.toml").unlink()
    with pytest.raises(ClusterError, match=r"does not exist: pyproject\.toml"):
        project_images.describe("operator", _BASES, tree)


def test_base_names_are_stable_and_local() -> None:
    first, second = base_images.references(), base_images.references()
    assert first == second
    assert first.python.startswith(f"{registry.HOST}/base/python:")
    assert first.vllm.startswith(f"{registry.HOST}/base/vllm-cpu:{base_images.VLLM_VERSION}-")


def test_outdated_keeps_the_newest_of_the_project_and_the_current_bases() -> None:
    operator = [f"{registry.HOST}/dsd-operator:{number}" for number in range(4)]
    others = [f"{registry.HOST}/base/python:old", f"{registry.HOST}/base/python:now", "elsewhere/dsd-operator:9"]
    gone = image_cleanup.outdated([*operator, *others], current=[operator[3], others[1]], kept=2)
    assert gone == [operator[2], others[0]]


@pytest.mark.parametrize("runs", [True, False])
def test_containerd_forgets_what_went_elsewhere_while_no_node_ran(runs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    known, current, left = (f"{registry.HOST}/dsd-operator:{tag}" for tag in ("known", "current", "left"))
    stored = dict.fromkeys([known, current, left, left.replace(":left", "@sha256:1"), "pause:1"], "sha256:1")
    removed: list[list[str]] = []
    monkeypatch.setattr(buildah, "stored", lambda: [known])
    monkeypatch.setattr(buildah, "prune_layers", lambda _: None)
    monkeypatch.setattr(full_node, "recorded_plane", lambda: runs or None)
    monkeypatch.setattr(container_runtime, "images", lambda _: stored)
    monkeypatch.setattr(container_runtime, "remove_images", lambda _, gone: removed.append(gone))
    image_cleanup.remove_outdated([current])
    assert removed == ([[left]] if runs else [])


def test_images_of_another_version_go_at_the_end_but_for_those_that_are_ours(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[set[str]] = []
    monkeypatch.setattr(debian, "require_root", lambda: None)
    monkeypatch.setattr(registry, "ensure_running", lambda: None)
    monkeypatch.setattr(registry, "has", lambda _: True)
    monkeypatch.setattr(paths, "cache_root", lambda: tmp_path / "cache")
    monkeypatch.setattr(image_cleanup, "remove", removed.append)
    with images.of_version(tree) as made:
        assert removed == []
    with images.of_version(paths.REPOSITORY):
        pass
    assert removed == [{made.operator, made.runtime}, set()]


def test_names_by_digest_go_with_their_tag() -> None:
    stored = {
        "here/a:1": "sha256:a1",
        "here/a@sha256:a1": "sha256:a1",
        "sha256:config-a1": "sha256:a1",
        "here/a:2": "sha256:a2",
        "sha256:config-a2": "sha256:a2",
        "here/b:same": "sha256:a2",
        "sha256:left-over": "sha256:old",
    }
    gone = container_runtime.without_tag(stored, ["here/a:1", "here/a:2"])
    assert gone == ["here/a:1", "here/a@sha256:a1", "sha256:config-a1", "here/a:2", "sha256:left-over"]


def test_existing_cluster_needs_named_images() -> None:
    assert images.from_environment({}) is None
    with pytest.raises(ClusterError, match="DSD_RUNTIME_IMAGE must name"):
        images.from_environment({"DSD_KUBECONFIG": "file", "DSD_OPERATOR_IMAGE": "a"})
    given = {"DSD_KUBECONFIG": "file", "DSD_OPERATOR_IMAGE": "a", "DSD_RUNTIME_IMAGE": "b"}
    assert images.from_environment(given) == images.Images(operator="a", runtime="b")
