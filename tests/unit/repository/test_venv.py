"""Virtualenvs of gigabytes do not pile up: a new one takes the place of the old, and nobody else's goes."""

from pathlib import Path

import pytest

from tools import venv
from tools.cluster import uv
from tools.cluster.paths import REPOSITORY


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Virtualenvs of this and of other checkouts."""
    this = venv._owner()
    owners = {
        "now": this,
        "before": this,
        "other-python": f"{REPOSITORY}\n2.7",
        "neighbour": this.replace(str(REPOSITORY), str(tmp_path)),
        "gone": this.replace(str(REPOSITORY), str(tmp_path / "gone")),
    }
    for name, owner in owners.items():
        (tmp_path / f"venv-{name}").mkdir()
        (tmp_path / f"venv-{name}" / ".checkout").write_text(owner)
    (tmp_path / "venv-nameless").mkdir()
    return tmp_path


def test_what_a_new_virtualenv_takes_the_place_of(cache: Path) -> None:
    assert sorted(path.name for path in venv.outdated(cache / "venv-now")) == ["venv-before", "venv-gone"]


def test_building_one_removes_them(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = cache / "venv-now"

    def build(where: Path, _: Path) -> None:
        assert (cache / "venv-before").exists(), "until the new one is there"
        where.mkdir(exist_ok=True)

    monkeypatch.setattr(venv, "_build", build)
    monkeypatch.setattr(venv, "_install_projects", lambda *_: None)
    monkeypatch.setattr(venv, "ensure_system_packages", lambda: None)
    monkeypatch.setattr(uv, "ensure", lambda: Path("uv"))
    venv.ensure(home)
    left = {path.name for path in cache.iterdir() if path.is_dir()}
    assert left == {"venv-now", "venv-other-python", "venv-neighbour", "venv-nameless"}
