"""The gate: only a vLLM whose hook points are all there is touched."""

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

from dsd_runtime import compat


@pytest.fixture(autouse=True)
def fresh_gate() -> None:
    """The gate decides once per process."""
    compat.gate.cache_clear()


def installed() -> Path:
    """The sources of the installed vLLM."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def test_installed_vllm_is_supported() -> None:
    assert compat.gate().mode == "on"
    assert compat.missing_hooks(installed()) == []


@pytest.mark.parametrize("version", ["0.31.9", "0.33.0", "0.320.0", "1.0", "0.32", "dev"])
def test_only_tried_series_pass(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    gate = compat.gate()
    assert (gate.mode, gate.vllm_version) == ("on" if version == "0.32" else "off", version)
    assert gate.mode == "on" or version in gate.reason


def test_no_vllm_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert compat.gate().mode == "off"
    assert "pip install" in compat.gate().reason


def copy_hooked_files(root: Path) -> Path:
    """A tree with only the files that hold hook points."""
    for file in {hook.file for hook in compat.HOOKS}:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_bytes((installed() / file).read_bytes())
    return root


@pytest.mark.parametrize("hook", compat.HOOKS, ids=lambda h: f"{h.owner}.{h.name}")
def test_each_missing_hook_is_noticed(hook: compat.Hook, tmp_path: Path) -> None:
    root = copy_hooked_files(tmp_path)
    path = root / hook.file
    path.write_text(path.read_text().replace(hook.name, f"{hook.name}_renamed"))
    assert f"{hook.owner}.{hook.name}" in compat.missing_hooks(root)


def test_changed_parameters_are_noticed(tmp_path: Path) -> None:
    root = copy_hooked_files(tmp_path)
    path = root / "v1/core/sched/scheduler.py"
    path.write_text(path.read_text().replace("num_accepted_tokens: int", "accepted: int"))
    assert compat.missing_hooks(root) == ["Scheduler.make_spec_decoding_stats"]


@pytest.mark.parametrize("text", [None, "def (", "\x00"])
def test_unreadable_source_counts_as_missing(text: str | None, tmp_path: Path) -> None:
    root = copy_hooked_files(tmp_path)
    path = root / "config/scheduler.py"
    path.unlink() if text is None else path.write_text(text)
    assert compat.missing_hooks(root) == ["SchedulerConfig.get_scheduler_cls"]
