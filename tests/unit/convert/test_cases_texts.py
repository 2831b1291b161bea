"""Config files, damaged quotes and shell text from the field, section A of the collected cases."""

from pathlib import Path

import pytest

from tests.unit.convert.converted import NGRAM, same_engine, speculative, text, vllm, words

pytestmark = pytest.mark.engine


# Config files.


def test_config_joined_by_an_equals_sign_is_never_taken() -> None:
    found = vllm("--config=/etc/vllm.yaml", "-sc", NGRAM)
    assert found.code == 2
    assert "vLLM ignores --config=FILE" in found.stderr
    assert "--config-file" in found.stderr


def test_config_in_two_words_needs_the_content(tmp_path: Path) -> None:
    assert "give its content with --config-file" in vllm("--config", "/etc/vllm.yaml").stderr
    file = tmp_path / "copy.yaml"
    file.write_text("speculative-config: {method: ngram, num_speculative_tokens: 3}\nmax-num-seqs: 8\nseed: 1\n")
    found = vllm("--config", "/etc/vllm.yaml", "--seed", "2", options=["--config-file", str(file)])
    assert found.spec["engine"] == {"maxNumSeqs": 8, "extraArgs": ["--seed=1", "--seed=2"]}
    same_engine(["acme/t", "--config", str(file), "--seed", "2"], found.resource)


YAML = """\
model: acme/t
speculative_config:
  method: eagle3
  model: acme/h
  revision: "2024-06-01"
  num-speculative-tokens: 3
  num_speculative_tokens_per_batch_size: [[1,8,3],[9,64,1]]
max-model-len: 4096
enable-prefix-caching: true
enforce-eager: false
cudagraph-capture-sizes: [1, 2, 4]
"""


def test_config_file_as_input(tmp_path: Path) -> None:
    found = text(YAML)
    assert "read as vLLM's own config file" in found.stderr
    assert found.spec["drafter"]["revision"] == "2024-06-01"
    assert [tuple(r.values()) for r in found.spec["schedule"]] == [(1, 8, 3), (9, 64, 1)]
    file = tmp_path / "vllm.yaml"
    file.write_text(YAML)
    same_engine(["--config", str(file)], found.resource)


@pytest.mark.parametrize(
    "block",
    [
        "speculative-config: {method: ngram, num_speculative_tokens: 3}",
        f"speculative_config: '{NGRAM}'",
        'speculative_config: >\n  {"method": "ngram",\n  "num_speculative_tokens": 3}',
        "speculative-config.method: ngram\nspeculative-config.num_speculative_tokens: 3",
        "spec-method: ngram\nspec_tokens: 3",
    ],
)
def test_config_file_in_every_style(block: str) -> None:
    assert text(f"model: acme/t\n{block}\n").spec["drafter"] == {"method": "ngram", "numSpeculativeTokens": 3}


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("speculative_config: {method: eagle, model: a/b, revision: 2024-06-01}", "put it in quotes"),
        (
            "speculative_config: {method: eagle, model: a/b, revision: 1.10, num_speculative_tokens: 1}",
            "put it in quotes",
        ),
        (f"revision: 1.10\nspeculative_config: '{NGRAM}'", "revision: YAML makes no text of it"),
        ("speculative_config: [a]", "not valid JSON"),
        ("speculative_config:", "no speculative decoding is configured here"),
        ("speculative_config: {}", "no speculative decoding is configured here"),
        ("speculative_config: false", "no speculative decoding is configured here"),
    ],
)
def test_config_file_with_a_fault(block: str, message: str) -> None:
    found = text(f"model: acme/t\nseed: 0\n{block}\n")
    assert found.code == 2
    assert message in found.stderr


# Damaged quotes.


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (f"'{NGRAM}'", "shell quotes around it"),
        ('{\\"method\\": \\"ngram\\", \\"num_speculative_tokens\\": 3}', "backslashes"),
        ("{method: mtp, num_speculative_tokens: 3}", "the shell removed the quotes"),
        ('{"model":', "it ends in the middle"),
        ("method:dspark", "not valid JSON"),
        ('{"method": "ngram", "num_speculative_tokens": 3,}', "a trailing comma"),
        ("{“method”: “ngram”, “num_speculative_tokens”: 3}", "typographic quotes"),
        ("{'method': 'ngram', 'num_speculative_tokens': 3}", "Python, not JSON"),
        ('{"method": "ngram", "num_speculative_tokens": NaN}', "NaN"),
        ("[]", "must be a JSON object"),
        ('"ngram"', "must be a JSON object"),
        ('{"method": "ngram", "method": "mtp"}', "given twice"),
    ],
)
def test_damaged_json_is_named_and_not_repaired(value: str, kind: str) -> None:
    found = speculative(value)
    assert found.code == 2
    assert kind in found.stderr


def test_json_that_the_shell_split_at_its_spaces() -> None:
    line = 'vllm serve acme/t --speculative-config={"method": "ngram", "num_speculative_tokens": 3} --seed 1'
    split = ["vllm", "serve", "acme/t", "--speculative-config={method:", "ngram,", "num_speculative_tokens:", "3}"]
    for found in (text(line), words(*split)):
        assert found.code == 2
        assert "the shell removed the quotes" in found.stderr
        assert """Did you mean '{"method": "ngram", "num_speculative_tokens": 3}'""" in found.stderr


def test_newlines_in_json_are_fine() -> None:
    assert speculative('{\n"method": "ngram",\n "num_speculative_tokens": 3}').spec["drafter"]["method"] == "ngram"


# Shell text that is not yet a value.

SCRIPT = r"""
#!/bin/bash
# starts the engine
set -euo pipefail
export HF_HOME=/models
MODEL=acme/t
ARGS=(--max-num-seqs 64)
ARGS+=(--seed "1")
exec vllm serve $MODEL "${ARGS[@]}" \
  --host 0.0.0.0 --port ${PORT:-8000} \@
  # --enforce-eager \
  --speculative-config "{\"method\":\"ngram\",\"num_speculative_tokens\":${K:-3}}" 2>&1 | tee log.txt
""".replace("@\n", " \n")


def test_a_launch_script() -> None:
    found = text(SCRIPT)
    assert found.spec["model"] == {"name": "acme/t"}
    assert found.spec["drafter"] == {"method": "ngram", "numSpeculativeTokens": 3}
    assert found.spec["engine"] == {
        "maxNumSeqs": 64,
        "extraArgs": ["--seed=1"],
        "env": [{"name": "HF_HOME", "value": "/models"}],
    }
    assert found.noted("$K", "its default is used", "--set K=VALUE")
    assert found.noted("a backslash with a space after it")
    assert text(SCRIPT, "--set", "K=5").spec["drafter"]["numSpeculativeTokens"] == 5


@pytest.mark.parametrize(
    ("value", "words_"),
    [
        ('"$(cat /spec.json)"', ["$(cat /spec.json)", "write what it prints"]),
        ("`cat /spec.json`", ["$(cat /spec.json)"]),
        ('"${SPEC}"', ["${SPEC}", "--set SPEC=VALUE"]),
        ("$SPEC", ["--set SPEC=VALUE"]),
        (f"'{NGRAM}' --chat-template ~/t.jinja", ["--chat-template: ~", "inside the pod"]),
        ('"{\\"method\\":\\"ngram\\",\\"num_speculative_tokens\\":$((K + 1))}"', ["$((K + 1))"]),
        ("''", ["no speculative decoding is configured here"]),
        ("null", ["no speculative decoding is configured here"]),
        ("None", ["no speculative decoding is configured here"]),
        ("'{}'", ["no speculative decoding is configured here"]),
    ],
)
def test_what_only_a_shell_knows_is_asked_for(value: str, words_: list[str]) -> None:
    found = text(f"vllm serve acme/t --speculative-config {value}")
    assert found.code == 2
    assert all(word in found.stderr for word in words_)


def test_a_variable_that_is_given() -> None:
    found = text('vllm serve "$M" --speculative-config "$SPEC"', "--set", "M=acme/t", "--set", f"SPEC={NGRAM}")
    assert found.spec["drafter"]["method"] == "ngram"


@pytest.mark.parametrize(
    "before",
    ["if x; then K=1; else K=2; fi", '[ -n "$X" ] && K=2', "K=1\ntest x || K=2", "for K in 1 2; do true; done"],
)
def test_what_is_assigned_under_a_condition_is_open(before: str) -> None:
    found = text(f"{before}\nvllm serve acme/t --spec-method ngram --spec-tokens $K")
    assert found.code == 2
    assert "--set K=VALUE" in found.stderr


@pytest.mark.parametrize("before", ["K=1\nK=2", "cd /x && K=2", "K=2\nif x; then K=2; fi"])
def test_the_last_assignment_counts(before: str) -> None:
    found = text(f"{before}\nvllm serve acme/t --spec-method ngram --spec-tokens $K")
    assert found.spec["drafter"]["numSpeculativeTokens"] == 2


def test_no_drafter_is_invented() -> None:
    found = vllm("--max-num-seqs", "8")
    assert found.code == 2
    assert "no speculative decoding is configured here" in found.stderr
