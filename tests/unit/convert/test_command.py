"""The command itself: exit codes, forms of output, what stands where."""

import json
from pathlib import Path

import pytest
import yaml

from kubectl_dsd.main import cli
from tests.unit.convert.converted import NGRAM, run

LINE = ["vllm", "serve", "acme/t", "--speculative-config", NGRAM]


def test_yaml_on_stdout_and_notes_on_stderr() -> None:
    found = run("--", *LINE)
    assert found.exit_code == 0
    assert yaml.safe_load(found.stdout)["kind"] == "DSDDeployment"
    assert "note: read as a vLLM command line (--from vllm)" in found.stderr


def test_nothing_partial_is_printed_unless_asked_for() -> None:
    line = ["--", *LINE, "--scheduler-cls", "a.B"]
    refused = run(*line)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "--scheduler-cls" in refused.stderr
    assert "--allow-partial" in refused.stderr
    allowed = run("--allow-partial", *line)
    assert allowed.exit_code == 0
    assert yaml.safe_load(allowed.stdout)["spec"]
    assert "--scheduler-cls" in allowed.stderr


def test_json_says_everything() -> None:
    found = run("-o", "json", "--", *LINE, "--scheduler-cls", "a.B", "--api-key", "s3cr3t-s3cr3t")
    assert found.exit_code == 3
    said = json.loads(found.stdout)
    assert (said["from"], said["resource"]) == ("vllm", None)
    assert [p["field"] for p in said["notCarriedOver"]] == ["--scheduler-cls"]
    assert said["secrets"][0].startswith("kubectl create secret generic t-env")
    assert any(p["field"] == "metadata.name" for p in said["notes"])


def test_a_problem_ends_with_all_of_them() -> None:
    found = run("--", "vllm", "serve", "./t", "-pp", "2", "--speculative-config", "{")
    assert (found.exit_code, found.stdout) == (2, "")
    assert all(word in found.stderr for word in ("-pp", "absolute path", "not valid JSON"))


@pytest.mark.parametrize("arguments", [(), ("-f", "-", "--", "x"), ("-f", "/nowhere"), ("--set", "x", "--", *LINE)])
def test_the_input_is_asked_for_plainly(arguments: tuple[str, ...]) -> None:
    found = run(*arguments, text="")
    assert found.exit_code == 2
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (f"vllm serve acme/t -sc '{NGRAM}'", "vllm"),
        (f"acme/t --speculative-config '{NGRAM}'", "vllm"),
        (f"  docker run vllm/vllm-openai acme/t -sc '{NGRAM}'", "docker"),
        (f"services: {{vllm: {{image: x/vllm, command: [acme/t, -sc, '{NGRAM}']}}}}", "compose"),
        (f"model: acme/t\nspeculative-config: {NGRAM}", "config"),
        (NGRAM, "json"),
    ],
)
def test_forms_are_found_out_and_can_be_forced(content: str, form: str) -> None:
    model = ["--model", "acme/t"] if form == "json" else []
    found = json.loads(run("-f", "-", "-o", "json", "--allow-partial", *model, text=content).stdout)
    assert found["from"] == form
    forced = json.loads(run("-f", "-", "-o", "json", "--allow-partial", "--from", form, *model, text=content).stdout)
    assert forced == found


def test_a_config_alone_needs_a_model() -> None:
    assert "give it with --model" in run("--", NGRAM).stderr
    assert yaml.safe_load(run("--model", "acme/t", "--", NGRAM).stdout)["spec"]["model"]["name"] == "acme/t"


def test_a_whole_line_in_one_word() -> None:
    assert run("--", f"vllm serve acme/t -sc '{NGRAM}'").exit_code == 0


@pytest.mark.parametrize(("name", "made"), [("llama", "llama"), ("My Llama", "my-llama"), (None, "t")])
def test_names(name: str | None, made: str) -> None:
    found = run(*(["--name", name] if name else []), "-n", "models", "--", *LINE)
    assert yaml.safe_load(found.stdout)["metadata"] == {"name": made, "namespace": "models"}


@pytest.mark.parametrize(
    "content", ["a: [", "a: &a [*a]", "- - -", "\0", "", "%", "{", "a: 2024-13-45\n", "!!python/x y"]
)
def test_nonsense_ends_in_words(content: str) -> None:
    found = run("-f", "-", text=content)
    assert found.exit_code == 2
    assert "Error: " in found.stderr


def test_a_file_too_large(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_text("x" * (1 << 21))
    assert "is larger than" in run("-f", str(file)).stderr


def test_it_is_a_sub_command(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["-n", "models", "convert", "--", *LINE], standalone_mode=False)
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["namespace"] == "models"
