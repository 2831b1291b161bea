"""The control groups of pods, some of which go while they are listed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.cluster import cgroups


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our group, with the groups of two pods; the kernel takes that of the first one away when it is looked into."""
    root = tmp_path / cgroups.NAME
    going, staying = root / "kubepods" / "going", root / "kubepods" / "staying"
    for number, group in enumerate((root, root / "kubepods", going, staying), start=10):
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.procs").write_text(f"{number}\n")
    monkeypatch.setattr(cgroups, "roots", lambda: [root])
    real: Callable[..., Any] = os.scandir

    def scandir(path: Any = ".") -> Any:
        if Path(path) == going and going.is_dir():
            (going / "cgroup.procs").unlink()
            os.rmdir(going)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return root


@pytest.mark.usefixtures("root")
def test_a_group_that_goes_hides_no_process_of_the_others() -> None:
    """Regression: `down` ended with a trace, and left mounts and links behind."""
    assert cgroups.processes() == {10, 11, 13}


def test_removing_goes_on_past_a_group_that_goes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(Path, "rmdir", lambda group: removed.append(group.name))
    cgroups.remove()
    assert removed == ["staying", "kubepods", cgroups.NAME], "deepest first"
    assert root.is_dir()
