"""What the command line says about speculation and address, against vLLM's own parser."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsd_runtime.schedule import from_triples
from dsd_runtime.usage import UsageError
from dsd_runtime.vllm_arguments import last_value, speculative_config, with_config_file, with_table
from tests.unit.runtime_core.serve_parser import command_line

JSON = '{"method": "ngram", "num_speculative_tokens": 3}'
TABLE = "num_speculative_tokens_per_batch_size"


def vllm_reads(arguments: list[str]) -> dict[str, Any] | None:
    """The speculative config of vLLM's own parser, with what `EngineArgs.create_speculative_config` adds to it."""
    read = command_line().parse_args(["serve", "acme/m", *arguments])
    flags = {"method": read.spec_method, "model": read.spec_model, "num_speculative_tokens": read.spec_tokens}
    given = {key: value for key, value in flags.items() if value is not None}
    config = read.speculative_config
    assert not given.keys() & (config or {}).keys(), "vLLM refuses this"
    return (
        None if config is None and not given else {k.replace("-", "_"): v for k, v in (given | (config or {})).items()}
    )


LINES = [
    [],
    ["--speculative-config", JSON],
    [f"--speculative-config={JSON}"],
    ["-sc", JSON],
    [f"--speculative_config={JSON}", "--seed", "0"],
    ["--speculative", JSON],
    ["--speculative-config", "null"],
    ["--speculative-config", ""],
    ["--speculative-config", '{"method": "mtp"}', "--speculative-config", JSON],
    ["--speculative-config", '{"method": "ngram", "num-speculative-tokens": 3}'],
    ["--speculative-config.method", "ngram", "--speculative-config.num_speculative_tokens", "3"],
    ["--speculative-config.method=ngram", "--speculative_config.prompt_lookup_max=4"],
    ["--speculative-config.method", "mtp", "--speculative-config", JSON],
    ["--speculative-config.draft_load_config.x", "1", "--speculative-config.draft_load_config.y", "z"],
    ["--spec-method", "ngram", "--spec-tokens=3"],
    ["--spec-model", "acme/h", "--speculative-config", '{"method": "eagle"}'],
    ["--enforce-eager", "-sc", JSON, "--port", "8001"],
    ["--enforce-eager", "--speculative-config.method", "ngram"],
    ["--api-key", "a", "b", "-sc", JSON],
]


@pytest.mark.parametrize("line", LINES)
def test_speculation_is_read_as_vllm_reads_it(line: list[str]) -> None:
    expected = vllm_reads(line)
    found = speculative_config(["acme/m", *line])
    if found is not None and expected is not None and "num_speculative_tokens" in found:
        found["num_speculative_tokens"] = int(found["num_speculative_tokens"])  # the parser's type conversion
    assert found == expected


@pytest.mark.parametrize("line", LINES)
def test_table_is_put_where_vllm_finds_it(line: list[str]) -> None:
    expected = vllm_reads(line)
    found = vllm_reads(with_table(["acme/m", *line], from_triples([(1, 8, 2)]))[1:])
    assert found == (expected | {TABLE: [[1, 8, 2]]} if expected is not None else None)


CONTENTS = [
    "speculative_config: {method: ngram, num_speculative_tokens: 3}",
    "speculative-config:\n  method: eagle3\n  num-speculative-tokens: 3",
    f"speculative-config: '{JSON}'",
    "speculative-config.method: ngram\nspeculative-config.num_speculative_tokens: 3",
    "speculative-config: null",
    "speculative-config: false",
    "port: 1234\nenforce-eager: true\napi-key: [a, b]",
]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("line", [[], ["--speculative-config", '{"method": "mtp"}'], ["--port", "4321"]])
def test_config_file_is_read_as_vllm_reads_it(content: str, line: list[str], tmp_path: Path) -> None:
    file = tmp_path / "vllm.yaml"
    file.write_text(content)
    words = ["--config", str(file), *line]
    assert speculative_config(["acme/m", *words]) == vllm_reads(words)
    port = last_value(with_config_file(["acme/m", *words]), "--port")
    assert int(port or 8000) == command_line().parse_args(["serve", "acme/m", *words]).port


def test_table_beats_the_config_file(tmp_path: Path) -> None:
    file = tmp_path / "vllm.yaml"
    file.write_text("speculative_config: {method: ngram, num_speculative_tokens: 3}")
    words = with_table(["acme/m", "--config", str(file)], from_triples([(1, 8, 2)]))
    assert vllm_reads(words[1:]) == json.loads(JSON) | {TABLE: [[1, 8, 2]]}


def test_unquoted_date(tmp_path: Path) -> None:
    file = tmp_path / "vllm.yaml"
    file.write_text("speculative_config: {method: eagle, revision: 2024-06-01}")
    with pytest.raises(UsageError, match="put a date in quotes"):
        speculative_config(["acme/m", "--config", str(file)])


@pytest.mark.parametrize(("text", "hint"), [("{", "not valid JSON"), ("[]", "must be a JSON object"), ("3", "object")])
def test_bad_json(text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        speculative_config(["acme/m", "-sc", text])


def test_words_after_the_end_of_options_are_values() -> None:
    assert speculative_config(["--", "-sc", JSON]) is None
