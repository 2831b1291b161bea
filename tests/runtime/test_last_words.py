"""What ends an engine core or a worker reaches the container's termination message, and nothing else does."""

import importlib.util
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsd_operator.status.crashes import last_lines
from dsd_runtime import last_words
from dsd_runtime.last_words import EVENTS, MAX_LENGTH, MAX_LINES

LOGGER = logging.getLogger("vllm.v1.engine.core")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty file, as the kubelet makes it; we listen."""
    path = tmp_path / "termination-log"
    path.touch()
    monkeypatch.setenv(last_words.PATH_ENV, str(path))
    before, hook = list(logging.getLogger("vllm").handlers), sys.excepthook
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    last_words.install()
    yield path
    logging.getLogger("vllm").handlers, sys.excepthook = before, hook


def fail(message: str, error: Exception) -> None:
    """Log as vLLM does."""
    try:
        raise error
    except Exception:
        LOGGER.exception(message)


def test_first_cause_comes_first_and_once(file: Path) -> None:
    for rank in range(8):
        logging.getLogger("vllm.v1.executor").debug("worker %d", rank)
        fail("WorkerProc failed to start.", ValueError("no room for\n  the KV cache"))
    fail("EngineCore failed to start.", Exception("WorkerProc initialization failed"))
    expected = "ValueError: no room for the KV cache | Exception: WorkerProc initialization failed"
    assert last_lines(file.read_text()) == expected


def test_the_cause_is_the_first_line_and_found_in_what_led_to_it(file: Path) -> None:
    error = OSError("the model cannot be loaded")
    error.__cause__ = ValueError("401 Client Error. Cannot access gated repo for url x")
    fail("EngineCore failed to start.", error)
    fail("EngineCore failed to start.", ValueError("OutOfMemoryError"))
    lines = ["dsd-cause: ModelAccessDenied", "OSError: the model cannot be loaded", "ValueError: OutOfMemoryError"]
    assert file.read_text().splitlines() == lines
    assert last_lines(file.read_text()) == "OSError: the model cannot be loaded | ValueError: OutOfMemoryError"


def test_what_ends_the_main_process_counts_if_nothing_ended_before(file: Path) -> None:
    hook = sys.excepthook
    hook(ValueError, ValueError("no such model: Repository Not Found"), None)
    assert file.read_text().splitlines()[0] == "dsd-cause: ModelNotFound"
    before = file.read_text()
    hook(RuntimeError, RuntimeError("Engine core initialization failed"), None)
    hook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert file.read_text() == before


def test_what_is_logged_while_serving_is_no_last_word(file: Path) -> None:
    fail("a request failed", ValueError("of a client"))
    LOGGER.error("EngineCore failed to start.")
    LOGGER.warning("EngineCore failed to start.", exc_info=ValueError())
    assert file.read_text() == ""


def test_message_is_bounded(file: Path) -> None:
    for number in range(50):
        fail("EngineCore encountered a fatal error.", ValueError(f"{number}" + "x" * 10_000))
    lines = file.read_text().splitlines()
    assert len(lines) == MAX_LINES
    assert max(map(len, lines)) == MAX_LENGTH
    assert lines[0].startswith("ValueError: 0")
    assert file.stat().st_size < 4096


def test_file_that_cannot_be_written_is_no_trouble(file: Path) -> None:
    file.unlink()
    fail("EngineCore failed to start.", ValueError("x"))
    assert not file.exists()


def test_outside_a_pod_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(last_words.PATH_ENV, str(tmp_path / "missing"))
    before = list(logging.getLogger("vllm").handlers)
    last_words.install()
    assert logging.getLogger("vllm").handlers == before


@pytest.mark.parametrize("event", EVENTS)
def test_vllm_still_says_so(event: str) -> None:
    """The messages are vLLM's and may change with it."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0]) / "v1"
    sources = [(root / name).read_text() for name in ("engine/core.py", "executor/multiproc_executor.py")]
    assert any(f'logger.exception("{event}' in source for source in sources)
