"""What is made of a resolved VllmConfig: the start-up table, the refusals, the envelope, the first schedule."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsd_runtime import plugin, resolved
from dsd_runtime.engine import start_ranges
from dsd_runtime.schedule import to_triples


def config(**changes: Any) -> Any:
    """A VllmConfig of the shape that we read; `changes` go to whichever part has that name."""
    speculative = {
        "method": "eagle",
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": None,
        "parallel_drafting": False,
        "use_heterogeneous_vocab": False,
        "draft_model_config": SimpleNamespace(max_model_len=2048),
        "use_step3p5_mtp": lambda: False,
        "use_multi_module_mtp": lambda: False,
    }
    parallel = {"pipeline_parallel_size": 1, "data_parallel_size": 1, "data_parallel_index": 0}
    model = {"is_moe": False, "is_hybrid": False, "served_model_name": "m"}
    scheduler = {"max_num_seqs": 16}
    parts: list[dict[str, Any]] = [speculative, parallel, model, scheduler]
    for part in parts:
        part.update({name: value for name, value in changes.items() if name in part})
    return SimpleNamespace(
        speculative_config=SimpleNamespace(**speculative),
        parallel_config=SimpleNamespace(**parallel),
        model_config=SimpleNamespace(**model),
        scheduler_config=SimpleNamespace(**scheduler),
        device_config=SimpleNamespace(device_type=changes.get("device_type", "cuda")),
        use_v2_model_runner=changes.get("use_v2_model_runner", False),
    )


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if dsd-serve had been given a config file and nothing else."""
    monkeypatch.setenv(resolved.CONFIG_ENV, "schedule.yaml")
    monkeypatch.delenv(resolved.PREPARED_ENV, raising=False)


def table_of(found: Any) -> Any:
    """The start-up table."""
    return found.speculative_config.num_speculative_tokens_per_batch_size


def test_start_up_table_prepares_every_k_and_is_no_schedule() -> None:
    found = config()
    plugin.insert_table(found)
    assert {k for _, _, k in table_of(found)} == {0, 1, 2, 3, 4}
    assert table_of(found)[0][0] == 1
    assert table_of(found)[-1][1] == 16
    assert resolved.has_superset(found)
    assert to_triples(start_ranges(found, resolved.envelope(found, resolved.verdict(found)))) == [[1, 16, 4]]


def test_without_a_config_file_vllm_starts_as_it_would_without_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can change K then, and a table costs graphs; a plain `vllm serve` loads the plugin too."""
    monkeypatch.delenv(resolved.CONFIG_ENV)
    for found in (config(), config(pipeline_parallel_size=2)):
        plugin.insert_table(found)
        assert table_of(found) is None


def test_prepared_tokens_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(resolved.PREPARED_ENV, "0,3,9")
    found = config()
    plugin.insert_table(found)
    assert [k for _, _, k in table_of(found)] == [3, 0], "9 is above the maximum"


def test_table_is_inserted_once() -> None:
    found = config()
    plugin.insert_table(found)
    before = list(table_of(found))
    found.scheduler_config.max_num_seqs = 99
    plugin.insert_table(found)
    assert table_of(found) == before


def test_table_of_the_user_stays_and_is_the_first_schedule() -> None:
    found = config(num_speculative_tokens_per_batch_size=[(5, 16, 9), (1, 4, 2)])
    plugin.insert_table(found)
    assert table_of(found) == [(5, 16, 9), (1, 4, 2)]
    envelope = resolved.envelope(found, resolved.verdict(found))
    assert to_triples(start_ranges(found, envelope)) == [[1, 4, 2], [5, 16, 4]]


def test_without_speculative_decoding_nothing_happens() -> None:
    found = config()
    found.speculative_config = None
    plugin.insert_table(found)
    assert found.speculative_config is None
    assert resolved.refusal(found) is not None


def test_surprises_never_reach_vllm() -> None:
    plugin.insert_table(SimpleNamespace())


@pytest.mark.parametrize(
    ("changes", "hint", "table"),
    [
        ({"pipeline_parallel_size": 2}, "pipeline", [[1, 8, 2]]),
        ({"data_parallel_size": 2, "is_moe": True}, "mixture-of-experts", [[1, 8, 2]]),
        ({"method": "nonsense"}, "nonsense", None),
        ({"method": "mlp_speculator"}, "mlp_speculator", None),
        ({"method": "ngram", "num_speculative_tokens": 300}, "300 speculative tokens are more than", [[1, 8, 2]]),
        ({"method": "suffix", "use_v2_model_runner": True}, "V1 only", None),
        ({"method": "suffix", "pipeline_parallel_size": 2}, "pipeline", None),
    ],
)
def test_refused_engines_get_the_schedule_as_a_static_table_where_the_method_bears_it(
    changes: dict[str, Any],
    hint: str,
    table: list[list[int]] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None: vLLM drafts the maximum always, the one K that cannot end an engine."""
    path = tmp_path / "schedule.yaml"
    path.write_text("ranges: [{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 2}]")
    monkeypatch.setenv(resolved.CONFIG_ENV, str(path))
    found = config(**changes)
    assert hint in str(resolved.refusal(found))
    plugin.insert_table(found)
    assert table_of(found) == table
    assert not resolved.has_superset(found)


def test_refused_engine_with_a_broken_file_keeps_vllms_static_k(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(resolved.CONFIG_ENV, str(tmp_path / "absent"))
    found = config(pipeline_parallel_size=2)
    plugin.insert_table(found)
    assert table_of(found) is None


def test_hybrid_is_refused_on_a_cpu_only() -> None:
    assert "hybrid" in str(resolved.refusal(config(is_hybrid=True, device_type="cpu")))
    assert resolved.refusal(config(is_hybrid=True)) is None
    assert resolved.refusal(config(device_type="cpu")) is None


def test_dense_data_parallelism_is_fine() -> None:
    found = config(data_parallel_size=2, data_parallel_index=1)
    assert resolved.refusal(found) is None
    assert resolved.identity(found) == {"model_name": "m", "engine": "1"}


@pytest.mark.parametrize(
    ("changes", "allowed", "verify_only"),
    [
        ({}, (0, 1, 2, 3, 4), False),
        ({"method": "suffix"}, (4,), False),
        ({"method": "draft_model", "use_v2_model_runner": True}, (0, 1, 2, 3, 4), True),
        ({"method": "draft_model", "parallel_drafting": True}, (0, 4), False),
        ({"method": "mtp", "use_step3p5_mtp": lambda: True}, (1, 2, 3, 4), False),
        ({"method": "mtp", "use_multi_module_mtp": lambda: True, "use_v2_model_runner": True}, (0, 1, 2, 3, 4), True),
    ],
)
def test_envelope(changes: dict[str, Any], allowed: tuple[int, ...], verify_only: bool) -> None:
    found = config(**changes)
    envelope = resolved.envelope(found, resolved.verdict(found))
    assert (envelope.allowed_tokens, envelope.verify_only) == (allowed, verify_only)
    assert set(envelope.prepared_tokens) <= set(allowed)
    assert envelope.drafter_max_model_len == 2048


@pytest.mark.parametrize(
    ("table", "prepared"),
    [(None, (4,)), ([(1, 14, 4), (15, 15, 2), (16, 16, 0)], (0, 2, 4)), ([(1, 8, 9), (9, 16, 1)], (1, 4))],
)
def test_prepared_is_what_the_table_holds_that_vllm_kept(table: Any, prepared: tuple[int, ...]) -> None:
    found = config(num_speculative_tokens_per_batch_size=table)
    envelope = resolved.as_started(found, resolved.envelope(found, resolved.verdict(found)))
    assert envelope.prepared_tokens == prepared


def test_drafter_without_a_model_has_no_length() -> None:
    """For ngram vLLM puts the target's own config in the drafter's place."""
    found = config(method="ngram")
    found.speculative_config.draft_model_config = found.model_config
    assert resolved.envelope(found, resolved.verdict(found)).drafter_max_model_len is None
