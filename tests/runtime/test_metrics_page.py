"""The dsd_ part of /metrics: its size whatever comes, and what promtool says of it."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from dsd_runtime import catalogue
from dsd_runtime.faults import Faults
from dsd_runtime.metrics import ScheduleMetrics, show_plugin
from dsd_runtime.outcome import StepOutcome
from dsd_runtime.schedule import MAX_BATCH_SIZE, MAX_RANGES, MAX_SPECULATIVE_TOKENS
from dsd_runtime.series_budget import PAGE_BYTES
from dsd_runtime.state import Active, Proposal, Result
from dsd_runtime.step_metrics import StepMetrics
from tests.runtime.conftest import Engine
from tests.runtime.examples import ranges, revision
from tests.runtime.test_metrics import Series, collected, registry
from tools import promtool

LONG_NAME = "/models/" + "long-organisation-name/" + "Very-Long-Model-Name-With-Size-And-Quantization-" * 2
"""127 characters; names on the Hugging Face hub have 96 at most, twice."""

FAR = 2.0**40 + 1 / 3
"""A number as long as floats get."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The multiprocess directory."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    return tmp_path


def step(k: int, batch_size: int) -> StepOutcome:
    """A step that touches every series, with numbers as after years."""
    drafts = (10**9,) * k
    return StepOutcome(batch_size, k, k, FAR, 10**12, k * 10**9, k * 10**9, drafts, drafts)


def use(folder: Path, name: str, tokens: Iterable[int], batch_sizes: Iterable[int], max_num_seqs: int) -> str:
    """Everything that one engine core shows after steps with each K and batch size."""
    labels = {"model_name": name, "engine": "0"}
    metrics = StepMetrics(labels, max_num_seqs, max(tokens))
    for k in tokens:
        for size in batch_sizes:
            metrics.observe(step(k, size))
    metrics.flush()
    schedules = ScheduleMetrics(labels)
    for source in ("file", "http"):
        for result in Result:
            schedules.count_update(source, result)
    edges = [MAX_BATCH_SIZE - MAX_RANGES + n for n in range(MAX_RANGES)]
    table = ranges((1, edges[0], 9), *((a, a, 90 + n) for n, a in enumerate(edges[1:])))
    schedules.show(Active.of(Proposal(table, revision(2**53 - 1), "start")).describe())
    show_plugin(labels, version="10.20.30.dev40", vllm_version="10.20.30.post40+cu130", method="extract_hidden_states",
                runner="V2", mode="on")  # fmt: skip
    Faults(labels)
    return generate_latest(registry(folder)).decode()


POWERS = [2**n for n in range(12)]


@pytest.mark.parametrize("name", ["m", "meta-llama/Meta-Llama-3.1-70B-Instruct", LONG_NAME])
def test_page_is_bounded_whatever_k_and_batch_sizes_come(folder: Path, name: str) -> None:
    page = use(folder, name, range(MAX_SPECULATIVE_TOKENS + 1), POWERS, 2048)
    print(f"{len(page)} bytes, {page.count(chr(10))} lines")
    assert len(page.encode()) <= PAGE_BYTES
    assert f'k="{catalogue.OTHER}"' in page


def test_totals_stay_exact_where_series_are_merged(folder: Path) -> None:
    use(folder, LONG_NAME, range(MAX_SPECULATIVE_TOKENS + 1), POWERS, 2048)
    found: Series = collected(folder)
    steps = 129 * 12
    assert sum(found["dsd_steps_total"].values()) == steps
    assert sum(found["dsd_emitted_tokens_total"].values()) == steps * 10**12
    drafted = 12 * 10**9 * sum(range(129))
    for what in ("draft", "accepted"):
        assert sum(found[f"dsd_{what}_tokens_total"].values()) == drafted
        assert sum(found[f"dsd_{what}_tokens_per_pos_total"].values()) == drafted
    assert sum(found["dsd_step_duration_seconds_count"].values()) == steps
    assert sum(found["dsd_step_duration_seconds_sum"].values()) == pytest.approx(steps * FAR)
    assert sum(found["dsd_step_seconds_total"].values()) == pytest.approx(steps * FAR)


def test_nothing_is_merged_in_ordinary_use(folder: Path) -> None:
    """Every K up to 4 at every batch size: more than one schedule can bring about."""
    page = use(folder, "meta-llama/Meta-Llama-3.1-70B-Instruct", range(5), POWERS[:9], 256)
    assert catalogue.OTHER not in page
    assert len(page.encode()) <= PAGE_BYTES


def lint(page: str) -> "subprocess.CompletedProcess[str]":
    """What promtool says of the dsd_ lines."""
    lines = [
        line for line in page.splitlines() if line.removeprefix("# HELP ").removeprefix("# TYPE ").startswith("dsd_")
    ]
    assert len(lines) > 50
    command = [promtool.ensure(), "check", "metrics"]
    return subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)


@pytest.mark.engine
def test_promtool_finds_nothing_wrong_with_the_real_page(engine: Engine) -> None:
    engine.server.complete("a b a b", 8)
    checked = lint(engine.server.client.get("/metrics").text)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.engine
def test_promtool_would_say_what_is_wrong(engine: Engine) -> None:
    page = engine.server.client.get("/metrics").text.replace(
        "# TYPE dsd_steps_total counter", "# TYPE dsd_steps_total gauge"
    )
    assert lint(page).returncode != 0


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
