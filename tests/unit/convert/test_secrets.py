"""No secret leaves the converter: wherever one stands in the input, it is in nothing that is printed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_dsd.convert.redactor import Redactor, holds_secret
from kubectl_dsd.convert.secret_names import is_secret_name
from tests.unit.convert.converted import NGRAM, run

SECRET = "Zx9Zx9Zx9Qw7Qw7Qw7"  # no beginning of its own: only its place tells that it is one
SHAPED = ("hf_" + SECRET, "sk-" + SECRET, f"https://user:{SECRET}@host/x", f"https://host/x?token={SECRET}")


def manifest(container: str) -> str:
    return (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n  template:\n    spec:\n      containers:\n"
        f"      - name: vllm\n        image: vllm/vllm-openai:v0.32.0\n        {container}\n"
    )


BY_PLACE = [
    f"vllm serve acme/t --api-key {SECRET} -sc '{NGRAM}'",
    f"vllm serve acme/t --api-key={SECRET} -sc '{NGRAM}'",
    f"vllm serve acme/t --api_key {SECRET} {SECRET}2 -sc '{NGRAM}'",
    f"vllm serve acme/t --api-k {SECRET} -sc '{NGRAM}'",
    f"vllm serve acme/t --hf-token {SECRET} -sc '{NGRAM}'",
    f"vllm serve acme/t '--api-key {SECRET}' -sc '{NGRAM}'",
    f"vllm serve acme/t --apikey {SECRET} -sc '{NGRAM}'",
    f"vllm serve acme/t --api-key {SECRET} -sc '{{bad'",
    f"vllm serve acme/t --api-key {SECRET}",
    f"HF_TOKEN={SECRET} vllm serve acme/t -sc '{NGRAM}'",
    f"export OPENAI_API_KEY={SECRET}\nvllm serve acme/t -sc '{NGRAM}'",
    f"KEY={SECRET}\nvllm serve acme/t --api-key $KEY -sc '{NGRAM}'",
    f"docker run -e HF_TOKEN={SECRET} vllm/vllm-openai:v1 acme/t -sc '{NGRAM}'",
    f"docker run --env=DB_PASSWORD={SECRET} vllm/vllm-openai:v1 acme/t -sc '{NGRAM}'",
    f"services:\n  v:\n    image: x/vllm\n    command: [acme/t, -sc, '{NGRAM}', --api-key, {SECRET}]\n",
    f"services: {{v: {{image: x/vllm, environment: [MY_SECRET={SECRET}], command: [acme/t, -sc, '{NGRAM}']}}}}\n",
    manifest(f"args: [acme/t, -sc, '{NGRAM}', '--api-key={SECRET}']"),
    manifest(f"args: [acme/t, -sc, '{NGRAM}']\n        env: [{{name: AWS_SECRET_ACCESS_KEY, value: {SECRET}}}]"),
    f"model: acme/t\napi-key: {SECRET}\nspeculative_config: {{method: ngram, num_speculative_tokens: 3}}\n",
    f"model: acme/t\nhf-token: {SECRET}\nspeculative_config: [{SECRET}\n",
]


@pytest.mark.parametrize("content", BY_PLACE, ids=range(len(BY_PLACE)))
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_secrets_by_their_place(content: str, form: str) -> None:
    for partial in ([], ["--allow-partial"]):
        found = run("-f", "-", "-o", form, *partial, text=content)
        assert SECRET not in found.stdout + found.stderr


SLOTS = [
    "vllm serve acme/t --otlp-traces-endpoint @SECRET -sc '@NGRAM'",
    "vllm serve acme/t --tool-server=@SECRET -sc '@NGRAM'",
    "vllm serve acme/t --kv-transfer-config '{\"x\": \"@SECRET\"}' -sc '@NGRAM'",
    "vllm serve acme/t --unknown-option @SECRET -sc '@NGRAM'",
    'vllm serve acme/t -sc \'{"method": "eagle", "model": "@SECRET", "num_speculative_tokens": 3}\'',
    'vllm serve acme/t -sc \'{"method": "@SECRET", "num_speculative_tokens": 3}\'',
    'vllm serve acme/t -sc \'{"method": "ngram", "num_speculative_tokens": "@SECRET"}\'',
    "vllm serve acme/t -sc '{method: @SECRET}'",
    "vllm serve acme/t -sc '@NGRAM' @SECRET",
    "vllm serve @SECRET -sc '@NGRAM'",
    "docker run -e PLAIN=@SECRET vllm/vllm-openai:v1 acme/t -sc '@NGRAM'",
    "docker run --label a=@SECRET vllm/vllm-openai:v1 acme/t -sc '@NGRAM'",
    "docker run @SECRET acme/t -sc '@NGRAM'",
    "services:\n  v:\n    image: x/vllm\n    command: [acme/t, -sc, '@NGRAM']\n    environment: {PLAIN: '@SECRET'}\n",
    "services:\n  v:\n    image: @SECRET\n    command: [vllm, serve, acme/t, -sc, '@NGRAM']\n    user: @SECRET\n",
]
MANIFESTS = [
    "env: [{name: PLAIN, value: '@SECRET'}]\n        args: [acme/t, -sc, '@NGRAM']",
    "args: [acme/t, -sc, '@NGRAM']\n        lifecycle: {postStart: {exec: {command: ['@SECRET']}}}",
    "args: [acme/t, -sc, '@NGRAM']\n      - name: other\n        image: x\n        args: ['@SECRET']",
]


def filled(slot: str, secret: str) -> str:
    return slot.replace("@NGRAM", NGRAM).replace("@SECRET", secret)


@pytest.mark.parametrize("secret", SHAPED)
@pytest.mark.parametrize("slot", [*SLOTS, *map(manifest, MANIFESTS)], ids=range(len(SLOTS) + len(MANIFESTS)))
def test_secrets_by_their_shape(slot: str, secret: str) -> None:
    found = run("-f", "-", "-o", "json", "--allow-partial", text=filled(slot, secret))
    assert SECRET not in found.stdout + found.stderr


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "VLLM_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "db_password",
        "GITHUB_TOKEN",
        "X_APIKEY",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "HF_HOME", "HF_TOKEN_PATH", "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD",
     "NCCL_DEBUG", "KEYBOARD", "SSL_CERT_FILE"],
)  # fmt: skip
def test_names_of_what_is_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("value", ['{"eos_token": "</s>"}', "acme/llama-8b", "https://host/path", "user@host", "0.9"])
def test_texts_without_secrets(value: str) -> None:
    assert not holds_secret(value)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=6, max_size=30), st.text(max_size=20))
def test_what_is_known_is_taken_out_of_any_text(secret: str, around: str) -> None:
    redactor = Redactor()
    redactor.learn(secret)
    if secret.strip() and len(secret.strip()) >= 6 and secret.strip() not in ("default", "disabled", "enabled"):
        assert secret.strip() not in redactor.text(f"{around}{secret}{around}").replace("<secret>", "\0")


def test_the_document_says_where_something_was_taken_out() -> None:
    content = filled(manifest(MANIFESTS[1]), SHAPED[0])
    found = json.loads(run("-f", "-", "-o", "json", "--allow-partial", text=content).stdout)
    assert [p["field"] for p in found["notCarriedOver"]] == [
        "spec.podTemplate.spec.containers[0].lifecycle.postStart.exec.command[0]"
    ]
