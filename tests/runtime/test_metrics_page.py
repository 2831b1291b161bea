"""The dsd_ part of /metrics: its size whatever comes, and what promtool says of it."""

import subprocess
from pathlib import Path

import pytest

from bench.overhead_page import DRAFTED, EMITTED, LONG_NAME, SECONDS, page
from dsd_runtime import catalogue
from dsd_runtime.schedule import MAX_SPECULATIVE_TOKENS
from dsd_runtime.series_budget import PAGE_BYTES
from tests.runtime.conftest import Engine
from tests.runtime.test_metrics import Series, collected
from tools.monitoring import programs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The multiprocess directory."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    return tmp_path


POWERS = [2**n for n in range(12)]


@pytest.mark.parametrize("name", ["m", "meta-llama/Meta-Llama-3.1-70B-Instruct", LONG_NAME])
def test_page_is_bounded_whatever_k_and_batch_sizes_come(folder: Path, name: str) -> None:
    text = page(folder, name, range(MAX_SPECULATIVE_TOKENS + 1), POWERS, 2048)
    print(f"{len(text)} bytes, {text.count(chr(10))} lines")
    assert len(text.encode()) <= PAGE_BYTES
    assert f'k="{catalogue.OTHER}"' in text


def test_totals_stay_exact_where_series_are_merged(folder: Path) -> None:
    page(folder, LONG_NAME, range(MAX_SPECULATIVE_TOKENS + 1), POWERS, 2048)
    found: Series = collected(folder)
    steps = 129 * 12
    assert sum(found["dsd_steps_total"].values()) == steps
    assert sum(found["dsd_emitted_tokens_total"].values()) == steps * EMITTED
    drafted = 12 * DRAFTED * sum(range(129))
    for what in ("draft", "accepted"):
        assert sum(found[f"dsd_{what}_tokens_total"].values()) == drafted
        assert sum(found[f"dsd_{what}_tokens_per_pos_total"].values()) == drafted
    assert sum(found["dsd_step_duration_seconds_count"].values()) == steps
    assert sum(found["dsd_step_duration_seconds_sum"].values()) == pytest.approx(steps * SECONDS)
    assert sum(found["dsd_step_seconds_total"].values()) == pytest.approx(steps * SECONDS)


def test_nothing_is_merged_in_ordinary_use(folder: Path) -> None:
    """Every K up to 4 at every batch size: more than one schedule can bring about."""
    text = page(folder, "meta-llama/Meta-Llama-3.1-70B-Instruct", range(5), POWERS[:9], 256)
    assert catalogue.OTHER not in text
    assert len(text.encode()) <= PAGE_BYTES


def lint(text: str) -> "subprocess.CompletedProcess[str]":
    """What promtool says of the dsd_ lines."""
    lines = [
        line for line in text.splitlines() if line.removeprefix("# HELP ").removeprefix("# TYPE ").startswith("dsd_")
    ]
    assert len(lines) > 50
    command = [str(programs.promtool()), "check", "metrics"]
    return subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)


@pytest.mark.engine
def test_promtool_finds_nothing_wrong_with_the_real_page(engine: Engine) -> None:
    engine.server.complete("a b a b", 8)
    checked = lint(engine.server.client.get("/metrics").text)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.engine
def test_promtool_would_say_what_is_wrong(engine: Engine) -> None:
    text = engine.server.client.get("/metrics").text.replace(
        "# TYPE dsd_steps_total counter", "# TYPE dsd_steps_total gauge"
    )
    assert lint(text).returncode != 0


@pytest.mark.engine
def test_real_page_has_the_catalogues_series_and_no_other(engine: Engine) -> None:
    engine.swap([(1, 64, 3)])
    engine.server.complete("the cat sat on the mat and the cat sat on the mat", 32)
    text = engine.server.client.get("/metrics").text
    kinds = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE dsd_"))
    assert kinds == {family.sample: family.kind for family in catalogue.FAMILIES}
    for name, series in engine.server.metrics().items():
        family = next((f for f in catalogue.FAMILIES if name.startswith(f.sample) and f.kind == "histogram"), None)
        family = next((f for f in catalogue.FAMILIES if name == f.sample), family)
        if family is not None:
            expected = {*catalogue.LABELS, *family.extra, *(["le"] if name.endswith("_bucket") else [])}
            assert all(set(dict(labels)) == expected for labels in series), name
