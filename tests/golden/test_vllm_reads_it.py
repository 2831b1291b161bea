"""What vLLM itself makes of the rendered arguments: its own `serve` parser is the judge."""

import argparse
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from dsd_runtime import config_file, serve, vllm_arguments
from dsd_runtime.protocol import CONFIG_FILE_NAME, ConfigFile
from dsd_runtime.schedule import to_triples
from tests.golden.samples import ROOT, SAMPLES, container_arguments, pod_spec, render

pytestmark = pytest.mark.engine

TABLE: Final = "num_speculative_tokens_per_batch_size"

DOCUMENTED: Final[dict[str, dict[str, Any]]] = {
    "llama-3.1-8b-eagle": {
        "method": "eagle",
        "model": "yuhuili/EAGLE-LLaMA3.1-Instruct-8B",
        "num_speculative_tokens": 3,
        TABLE: [[1, 64, 3], [65, 128, 1], [129, 512, 0]],
    },
    "llama-3.1-8b-eagle3": {
        "method": "eagle3",
        "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        # vLLM's documentation says 3 and schedules 5, which vLLM clamps to 3 without a word.
        "num_speculative_tokens": 5,
        TABLE: [[1, 16, 5], [17, 32, 4], [33, 64, 3], [65, 128, 1], [129, 512, 0]],
    },
}
"""The two examples of vLLM's documentation of dynamic speculative decoding, as speculative configs."""

EACH: Final = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
EACH_DOCUMENTED: Final = pytest.mark.parametrize("name", DOCUMENTED)


@cache
def vllm_parser() -> argparse.ArgumentParser:
    """The parser of `vllm serve`, built as vLLM's command line builds it."""
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser: argparse.ArgumentParser = FlexibleArgumentParser()
    ServeSubcommand().subparser_init(parser.add_subparsers(dest="subparser"))
    return parser


def vllm_reads(arguments: tuple[str, ...] | list[str]) -> argparse.Namespace:
    return vllm_parser().parse_args(["serve", *arguments])


def sample_of(name: str) -> Path:
    return ROOT / "samples" / f"{name}.yaml"


def file_of(sample: Path) -> ConfigFile:
    """The mounted config file as the runtime reads it."""
    return config_file.parse(render(sample)["ConfigMap"]["data"][CONFIG_FILE_NAME].encode())


@EACH
def test_vllm_takes_the_arguments_and_nothing_is_left_over(sample: Path) -> None:
    options = serve.split(container_arguments(sample))
    read = vllm_reads(options.vllm)
    assert read.model_tag == container_arguments(sample)[0]
    assert read.port == 8000
    assert options.config == Path("/etc/dsd") / CONFIG_FILE_NAME


@EACH
def test_the_arguments_do_not_carry_the_schedule(sample: Path) -> None:
    assert TABLE not in vllm_reads(serve.split(container_arguments(sample)).vllm).speculative_config


@EACH_DOCUMENTED
def test_the_documented_config_but_for_the_start_up_table(name: str) -> None:
    read = vllm_reads(serve.split(container_arguments(sample_of(name))).vllm)
    expected = {key: value for key, value in DOCUMENTED[name].items() if key != TABLE}
    assert read.speculative_config == expected
    assert read.model_tag == "meta-llama/Llama-3.1-8B-Instruct"


@EACH_DOCUMENTED
def test_the_documented_schedule_is_in_force_before_the_first_request(name: str) -> None:
    assert to_triples(file_of(sample_of(name)).ranges) == DOCUMENTED[name][TABLE]


@EACH_DOCUMENTED
def test_without_the_plugin_vllm_gets_exactly_the_documented_config(name: str) -> None:
    options = serve.split(container_arguments(sample_of(name)))
    arguments = vllm_arguments.with_table(options.vllm, file_of(sample_of(name)).ranges)
    assert vllm_reads(arguments).speculative_config == DOCUMENTED[name]


@EACH_DOCUMENTED
def test_the_documented_model_runner(name: str) -> None:
    (engine,) = pod_spec(sample_of(name))["containers"]
    assert {"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "0"} in engine["env"]


def test_the_typed_fields_of_a_sample_arrive() -> None:
    read = vllm_reads(serve.split(container_arguments(sample_of("rl-rollout"))).vllm)
    assert read.served_model_name == ["policy"]
    assert (read.max_num_seqs, read.max_model_len, read.tensor_parallel_size) == (512, 16384, 2)
    assert read.gpu_memory_utilization == 0.92
    assert read.enable_sleep_mode is True
