"""Command lines from the field, section A of the collected cases: each of them, and its kind."""

import json

import pytest

from tests.unit.convert.converted import NGRAM, run, same_engine, speculative, text, vllm, words

pytestmark = pytest.mark.engine

EAGLE = {"method": "eagle3", "model": "acme/h", "num_speculative_tokens": 3}


# Every spelling of a flag.

SPELLINGS = [
    ["acme/t", "-sc", json.dumps(EAGLE)],
    ["acme/t", f"-sc={json.dumps(EAGLE)}"],
    ["acme/t", f"--speculative_config={json.dumps(EAGLE)}"],
    ["acme/t", "--speculative", json.dumps(EAGLE)],
    ["acme/t", "--spec-method", "eagle3", "--spec-model", "acme/h", "--spec-tokens", "3"],
    ["acme/t", "--spec_method=eagle3", "--spec-mod", "acme/h", "--spec-tok", "3"],
    [
        "acme/t",
        "--speculative-config.method",
        "eagle3",
        "--speculative_config.model=acme/h",
        "-sc.num_speculative_tokens=3",
    ],
    ["acme/t", "-sc.method=eagle3", "-sc.model=acme/h", "-sc.num-speculative-tokens=3"],
    ["--speculative-config", json.dumps(EAGLE), "--model", "acme/t"],
    ["--model=acme/t", "--speculative-config", json.dumps(EAGLE)],
    ["--speculative-config", json.dumps(EAGLE), "acme/t"],
    [
        "--speculative-config",
        json.dumps({"num-speculative-tokens": 3, "method": "eagle3", "model": "acme/h"}),
        "acme/t",
    ],
]


@pytest.mark.parametrize("line", [line for i, line in enumerate(SPELLINGS) if i != 6])
def test_one_resource_for_every_spelling(line: list[str]) -> None:
    found = words("vllm", "serve", *line)
    assert found.spec["model"] == {"name": "acme/t"}
    assert found.spec["drafter"] == {"method": "eagle3", "model": "acme/h", "numSpeculativeTokens": 3}
    assert (found.code, found.lost) == (0, [])
    same_engine(line, found.resource)


def test_the_old_entry_point_is_the_same() -> None:
    line = ["--model", "acme/t", "-sc", NGRAM]
    found = words("python3", "-m", "vllm.entrypoints.openai.api_server", *line)
    assert found.spec == words("vllm", "serve", *line).spec


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--tensor-parallel", "2"], "tensorParallelSize", 2),
        (["-tp=2"], "tensorParallelSize", 2),
        (["--max_model_len", "4096"], "maxModelLen", 4096),
        (["--max-num-se=64"], "maxNumSeqs", 64),
        (["-q", "fp8"], "quantization", "fp8"),
        (["--gpu_memory_utilization", ".85"], "gpuMemoryUtilization", 0.85),
        (["--dtype=bfloat16"], "dtype", "bfloat16"),
        (["--max-num-seqs", "4", "--max-num-seqs", "8"], "maxNumSeqs", 8),
    ],
)
def test_typed_fields(arguments: list[str], field: str, value: object) -> None:
    found = vllm(*arguments, "-sc", NGRAM)
    assert found.spec["engine"][field] == value
    assert "extraArgs" not in found.spec["engine"]
    same_engine(["acme/t", *arguments, "-sc", NGRAM], found.resource)


@pytest.mark.parametrize("arguments", [["--shutdown-timeout", "50"], ["--shutdown_timeout=50"], ["--shut", "50"]])
def test_the_time_to_drain(arguments: list[str]) -> None:
    """Beside its field, it would make a pod's grace period too short."""
    found = vllm(*arguments, "-sc", NGRAM)
    assert found.spec["rollout"] == {"drainTimeoutSeconds": 50}
    assert "extraArgs" not in found.spec.get("engine", {})
    same_engine(["acme/t", *arguments, "-sc", NGRAM], found.resource)


@pytest.mark.parametrize(("value", "words_"), [("-1", "greater than or equal to 0"), ("5s", "must be a whole number")])
def test_a_time_to_drain_that_is_none(value: str, words_: str) -> None:
    found = vllm(f"--shutdown-timeout={value}", "-sc", NGRAM)
    assert (found.code, words_ in found.stderr) == (2, True), found.stderr


@pytest.mark.parametrize(
    ("arguments", "words_"),
    [
        (["-tp2"], ["-tp2", "no such option"]),
        (["--data-parallel", "4"], ["--data-parallel", "short for several options"]),
        (["--sead", "0"], ["--sead", "did you mean --seed?"]),
    ],
)
def test_what_vllm_does_not_know_is_not_passed_on(arguments: list[str], words_: list[str]) -> None:
    found = vllm(*arguments, "-sc", NGRAM)
    assert found.missed(*words_)
    assert "engine" not in found.spec or "extraArgs" not in found.spec["engine"]
    assert run("--", "vllm", "serve", "acme/t", *arguments, "-sc", NGRAM).exit_code == 3


def test_a_flag_beside_the_same_key_is_refused_as_by_vllm_in_either_spelling_of_the_key() -> None:
    for key in ("num_speculative_tokens", "num-speculative-tokens"):
        found = speculative({"method": "ngram", key: 7}, "--spec-tokens", "3")
        assert "--spec-tokens: --speculative-config says num_speculative_tokens too" in found.stderr


# One item that holds flag and value.


def test_an_item_with_flag_and_value_on_the_command_line_is_refused_without_its_value() -> None:
    found = vllm("--api-key s3cr3t-s3cr3t", "-sc", NGRAM)
    assert found.code == 2
    assert "--api-key: option and value stand in one item" in found.stderr
    assert "s3cr3t" not in found.stderr


# Old flags.

OLD = (
    'python -m vllm.entrypoints.openai.api_server --model acme/t -tp 4 --speculative-model "[ngram]" '
    "--num_speculative_tokens 5 --ngram-prompt-lookup-max 4 --speculative-draft-tensor-parallel-size 1 "
    "--speculative-max-model-len 2048 --use-v2-block-manager --spec-decoding-acceptance-method "
    "typical_acceptance_sampler --swap-space 20 --disable-log-requests"
)


def test_a_line_of_old_flags() -> None:
    found = text(OLD)
    assert found.spec["drafter"] == {
        "method": "ngram",
        "numSpeculativeTokens": 5,
        "promptLookup": {"max": 4},
        "parameters": {"max_model_len": 2048},
    }
    assert found.spec["engine"] == {"tensorParallelSize": 4}
    assert found.lost == []
    for name in ("--use-v2-block-manager", "--swap-space", "--disable-log-requests", "--num-speculative-tokens"):
        assert found.noted(name)
    assert found.noted("typical acceptance sampler was lossy", "outputs change")
    assert found.noted("draft_tensor_parallel_size", "loads no drafter")


def test_old_flags_of_a_draft_model() -> None:
    size = ["--speculative-draft-tensor-parallel-size", "1"]
    found = vllm(
        "--speculative-model", "acme/small", "--num-speculative-tokens=4", *size, options=["--method", "draft_model"]
    )
    assert found.spec["drafter"] == {
        "method": "draft_model", "model": "acme/small", "numSpeculativeTokens": 4, "tensorParallelSize": 1,
    }  # fmt: skip


DEAD = [
    ("--guided-decoding-backend", ["xgrammar"], "structured-outputs-config"),
    ("--rope-scaling", ['{"factor": 2}'], "--hf-overrides"),
    ("--max-seq-len-to-capture", ["8192"], "--max-cudagraph-capture-size"),
    ("--cuda-graph-sizes", ["1", "2", "4"], "--cudagraph-capture-sizes"),
    ("--task", ["embed"], "--runner"),
    ("--speculative-disable-by-batch-size", ["32"], "range from 33"),
]
GONE = [
    ("--task", ["generate"]), ("--device", ["cuda"]), ("--num-scheduler-steps", ["8"]), ("--enable-reasoning", []),
    ("--use-v2-block-manager", []), ("--swap-space", ["4"]), ("--disable-log-requests", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "hint"), DEAD)
def test_dead_options_that_meant_something(name: str, values: list[str], hint: str) -> None:
    found = words("vllm", "serve", name, *values, "-sc", NGRAM, "--", "acme/t")
    assert found.missed(name, hint)


@pytest.mark.parametrize(("name", "values"), GONE)
def test_dead_options_that_can_go(name: str, values: list[str]) -> None:
    found = words("vllm", "serve", name.replace("-", "_").replace("__", "--", 1), *values, "acme/t", "-sc", NGRAM)
    assert found.noted(name)
    assert (found.lost, found.spec["model"]["name"]) == ([], "acme/t")


# Numbers as people write them.


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--max-model-len", "128k"], "maxModelLen", 128000),
        (["--max-model-len", "32K"], "maxModelLen", 32768),
        (["--max-model-len", "25.6k"], "maxModelLen", 25600),
        (["--max-model-len", "1048576"], "maxModelLen", 1048576),
        (["--max-model-len", "auto"], "extraArgs", ["--max-model-len=auto"]),
        (["--max-model-len", "-1"], "extraArgs", ["--max-model-len=-1"]),
        (["--max-model-len", "4096", "--max-model-len=auto"], "extraArgs", ["--max-model-len=auto"]),
        (["--max-model-len=auto", "--max-model-len", "4096"], "maxModelLen", 4096),
        (["--max-num-batched-tokens", "16K"], "extraArgs", ["--max-num-batched-tokens=16K"]),
    ],
)
def test_numbers(arguments: list[str], field: str, value: object) -> None:
    found = vllm(*arguments, "-sc", NGRAM)
    assert found.spec["engine"] == {field: value}
    same_engine(["acme/t", *arguments, "-sc", NGRAM], found.resource)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--max-num-seqs", "1k"], "write 1000"),
        (["--max-num-seqs", "-1"], "maxNumSeqs"),
        (["--max-num-seqs", "99999999999"], "maxNumSeqs"),
        (["--max-num-seqs", "1.048576e+06"], "Helm"),
        (["--max-num-seqs", "256.0"], "whole number"),
        (["--gpu-memory-utilization", "90%"], "such as 0.9"),
        (["--gpu-memory-utilization", "90"], "gpuMemoryUtilization"),
        (["--max-model-len", "25.6K"], "such as 32768 or 32K"),
        (["--max-num-batched-tokens", "1.048576e+06"], "Helm"),
    ],
)
def test_numbers_that_vllm_refuses(arguments: list[str], hint: str) -> None:
    found = vllm(*arguments, "-sc", NGRAM)
    assert found.code == 2
    assert hint in found.stderr


def test_k_with_a_suffix_in_a_dotted_key_is_a_number() -> None:
    line = ["-sc.method=ngram", "-sc.num_speculative_tokens", "3"]
    assert vllm(*line).spec["drafter"]["numSpeculativeTokens"] == 3


# Several served names.


def test_all_served_names_survive() -> None:
    line = ["--served-model-name", "a", "b", "c,d", "-sc", NGRAM]
    found = vllm(*line)
    assert found.spec["model"]["servedNames"] == ["a", "b", "c,d"]
    same_engine(["acme/t", *line], found.resource)


# Not vLLM.


@pytest.mark.parametrize(
    "line",
    [
        "python -m sglang.launch_server --model-path acme/t --speculative-algo EAGLE --speculative-num-steps 3",
        "vllm serve acme/t --speculative-algo EAGLE --speculative-num-steps 3 --speculative-num-draft-tokens 4",
    ],
)
def test_sglang(line: str) -> None:
    for found in (text(line), words(*line.split())):
        assert found.code == 2
        assert "SGLang" in found.stderr
        assert "--speculative-num-steps" in found.stderr


def test_tensorrt() -> None:
    found = text("backend: pytorch\nspeculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: 3\n")
    assert found.code == 2
    assert "decoding_type: a key of TensorRT-LLM" in found.stderr


@pytest.mark.parametrize("line", ["trtllm-serve x", "ray start --head", "llama-server -m x", "ls -l"])
def test_other_programs(line: str) -> None:
    assert text(line).code == 2


# Several nodes, several processes.


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nnodes", "2", "--node-rank", "0"],
        ["--headless"],
        ["-dp", "4"],
        ["--data-parallel-size=2"],
        ["-pp", "2"],
        ["--data-parallel-rank", "0"],
        ["--distributed-executor-backend", "ray"],
    ],
)
def test_more_than_one_engine_is_refused(arguments: list[str]) -> None:
    found = vllm(*arguments, "-sc", NGRAM)
    assert found.code == 2
    assert arguments[0].partition("=")[0] in found.stderr


@pytest.mark.parametrize(
    "arguments", [["-dp", "1"], ["-pp=1"], ["--nnodes=1", "--node-rank=0", "--master-port", "29501"]]
)
def test_one_engine_may_be_said(arguments: list[str]) -> None:
    found = vllm(*arguments, "-sc", NGRAM)
    assert (found.lost, found.spec.get("engine")) == ([], None)


def test_ray_before_vllm() -> None:
    found = text(f"ray start --head && vllm serve acme/t -sc '{NGRAM}'")
    assert found.code == 2
    assert "spec.replicas" in found.stderr


def test_a_scheduler_class_is_not_carried_over() -> None:
    assert vllm("--scheduler-cls", "a.B", "-sc", NGRAM).missed("--scheduler-cls", "would decide K")


# Where the model lives.


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("hf://acme/t", "acme/t"),
        ("s3://bucket/t", "s3://bucket/t"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("/models/t", "/models/t"),
        ("acme/t:Q4_K_M", "acme/t:Q4_K_M"),
    ],
)
def test_models(model: str, name: str) -> None:
    assert words("vllm", "serve", model, "-sc", NGRAM).spec["model"]["name"] == name


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("./model", "absolute path"),
        ("models/acme/t", "absolute path"),
        ("pvc://claim/t", "podTemplate"),
        ("https://huggingface.co/acme/t", "Hugging Face id"),
    ],
)
def test_models_that_cannot_be_loaded(model: str, hint: str) -> None:
    found = words("vllm", "serve", model, "-sc", NGRAM)
    assert found.code == 2
    assert hint in found.stderr
