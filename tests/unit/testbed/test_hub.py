"""The local hub, asked by the hub's own client."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tools.testbed.hub import Hub, hub

DOWNLOAD: Final = "import huggingface_hub, sys; print(huggingface_hub.snapshot_download(sys.argv[1]))"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(bytes(100_000))
    return directory


def download(served: Hub, home: Path, name: str = "acme/tiny", **variables: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the client reads its environment when it is imported."""
    environment = os.environ | {"HF_HOME": str(home), "HF_ENDPOINT": served.address, "no_proxy": "*"} | variables
    return subprocess.run(
        [sys.executable, "-c", DOWNLOAD, name], env=environment, capture_output=True, text=True, check=False
    )


def test_a_model_is_downloaded_once(tmp_path: Path, model: Path) -> None:
    with hub({"acme/tiny": model}) as served:
        first = download(served, tmp_path / "home")
        assert first.returncode == 0, first.stderr
        stored = Path(first.stdout.strip())
        assert (stored / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
        assert sorted(Path(path).name for path in served.downloads()) == ["config.json", "model.safetensors"]

        served.asked.clear()
        assert download(served, tmp_path / "home").returncode == 0
        assert served.downloads() == []
        assert served.asked, "the client asks whether there is something new"

        served.asked.clear()
        assert download(served, tmp_path / "home", HF_HUB_OFFLINE="1").returncode == 0
        assert served.asked == []


def test_what_it_does_not_have_is_not_found(tmp_path: Path, model: Path) -> None:
    with hub({"acme/tiny": model}) as served:
        done = download(served, tmp_path / "home", "acme/other")
        assert done.returncode != 0
        assert "RepositoryNotFoundError" in done.stderr
