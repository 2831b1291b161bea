"""A secret planted anywhere in the input, with any name for one, is in nothing that is printed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_dsd.convert.redactor import Redactor, holds_secret
from kubectl_dsd.convert.secret_names import is_secret_name
from tests.unit.convert.converted import NGRAM, run, text
from tests.unit.convert.test_secrets import SECRET, manifest

NAMES = [
    *("OTEL_EXPORTER_OTLP_HEADERS", "PGPASSWORD", "API_KEYS", "MINIO_SECRETKEY", "AZURE_STORAGE_CONNECTION_STRING"),
    *("SSL_KEY_PASSWORD", "SLACK_WEBHOOK_URL", "AWS_SECRET_ACCESS_KEY", "ACCESS_TOKENS", "DB_PW", "REDIS_AUTH"),
]
KEYS = ["accessToken", "hfToken", "password", "api_keys", "authorization", "aws_secret_access_key", "clientSecret"]

OF_NAMES = [
    "vllm serve acme/t -sc '@NGRAM' --model-loader-extra-config.@NAME=@SECRET",
    "vllm serve acme/t -sc '@NGRAM' --kv-transfer-config.kv_connector_extra_config.@NAME @SECRET",
    "export @NAME=@SECRET\nvllm serve acme/t -sc '@NGRAM'",
    "curl -H '@NAME: @SECRET' http://x\nvllm serve acme/t -sc '@NGRAM'",
    "hf login --@NAME=@SECRET; vllm serve acme/t -sc '@NGRAM'",
    "docker run -e @NAME=@SECRET vllm/vllm-openai:v1 acme/t -sc '@NGRAM'",
    "docker run --label @NAME=@SECRET --userns @NAME=@SECRET vllm/vllm-openai:v1 acme/t -sc '@NGRAM'",
    "services: {v: {image: x/vllm, environment: {@NAME: '@SECRET'}, command: [acme/t, -sc, '@NGRAM']}}",
    "services: {v: {image: x/vllm, '@NAME': '@SECRET', command: [acme/t, -sc, '@NGRAM', '--@NAME=@SECRET']}}",
    "services: {v: {image: x/vllm, environment: {@NAME: '@SECRET'}, command: [acme/t, '--foo=@SECRET']}}",
    "model: acme/t\n@NAME: '@SECRET'\nspeculative_config: {method: ngram, num_speculative_tokens: 3}\n",
    "vllm: {args: [acme/t, -sc, '@NGRAM'], env: {@NAME: '@SECRET'}, other: {@NAME: '@SECRET'}}",
    manifest("args: [acme/t, -sc, '@NGRAM']\n        env: [{name: '@NAME', value: '@SECRET'}]"),
    manifest("args: [acme/t, -sc, '@NGRAM']\n      - {name: s, image: x, args: ['--@NAME=@SECRET']}"),
    manifest("args: [acme/t, -sc, '@NGRAM']\n      - {name: s, image: x, args: ['--@NAME', '@SECRET']}"),
    manifest("args: [acme/t, -sc, '@NGRAM']\n      - {name: s, image: x, command: [sh, -c, 'export @NAME=@SECRET']}"),
    manifest(
        "args: [acme/t, -sc, '@NGRAM']\n      - {name: s, image: x, env: [{name: '@NAME', value: '@SECRET'}],"
        " args: [mentions, '@SECRET']}"
    ),
    manifest("args: [acme/t, -sc, '@NGRAM']\n      initContainers: [{name: i, image: x, args: ['--@NAME=@SECRET']}]"),
    "a: &a\n@NAME: *@SECRET\n",
]
OF_KEYS = [
    """vllm serve acme/t -sc '@NGRAM' --model-loader-extra-config '{"a": [{"@KEY": @VALUE}]}'""",
    """vllm serve acme/t -sc '@NGRAM' --kv-transfer-config.kv_connector_extra_config '{"@KEY": [@VALUE]}'""",
    (
        """vllm serve acme/t -sc '{"method": "ngram", "num_speculative_tokens": 3, "draft_load_config": """
        """{"model_loader_extra_config": {"@KEY": @VALUE}}}'"""
    ),
    """vllm serve acme/t -sc '{"method": "ngram", "num_speculative_tokens": {"@KEY": @VALUE}}'""",
    """vllm serve acme/t -sc '{"method": "ngram", "@KEY": @VALUE'""",
    """docker run -e CONFIG='{"@KEY": @VALUE}' vllm/vllm-openai:v1 acme/t -sc '@NGRAM'""",
    manifest("""args: [acme/t, -sc, '@NGRAM']\n        env: [{name: CONFIG, value: '{"@KEY": @VALUE}'}]"""),
    manifest("""args: [acme/t, -sc, '@NGRAM']\n      - {name: s, image: x, args: ['--config={"@KEY": [@VALUE]}']}"""),
    (
        "model: acme/t\nmodel_loader_extra_config: {@KEY: @VALUE}\n"
        "speculative_config: {method: ngram, num_speculative_tokens: 3}\n"
    ),
]
VALUES = [f'"{SECRET}"', f'"Basic {SECRET}"', f'"Bearer {SECRET}"', "1234567890"]


def said(content: str, *options: str) -> str:
    """All that the command prints for `content`, with and without leave to print a part."""
    content = content.replace("@NGRAM", NGRAM)
    found = [run("-f", "-", *options, *partial, text=content) for partial in ([], ["--allow-partial"])]
    return "".join(f.stdout + f.stderr for f in found)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(OF_NAMES),
    st.sampled_from(NAMES),
    st.from_regex(r"Q[a-zA-Z0-9]{3}[0-9][A-Za-z0-9+/]{6,20}", fullmatch=True),
    st.sampled_from(["yaml", "json"]),
)
def test_a_planted_secret_is_never_printed(slot: str, name: str, secret: str, form: str) -> None:
    assert secret not in said(slot.replace("@NAME", name).replace("@SECRET", secret), "-o", form)


@pytest.mark.parametrize("slot", OF_NAMES, ids=range(len(OF_NAMES)))
def test_secrets_by_name_in_every_form(slot: str) -> None:
    for name in NAMES:
        assert SECRET not in said(slot.replace("@NAME", name).replace("@SECRET", SECRET), "-o", "json"), name


@pytest.mark.parametrize("slot", OF_KEYS, ids=range(len(OF_KEYS)))
@pytest.mark.parametrize("value", VALUES)
def test_secrets_by_the_key_of_json(slot: str, value: str) -> None:
    secret = value.strip('"').rpartition(" ")[2]
    for key in KEYS:
        assert secret not in said(slot.replace("@KEY", key).replace("@VALUE", value), "-o", "json"), key


def test_a_short_secret_is_hidden_where_it_stands() -> None:
    config = {"method": "ngram", "num_speculative_tokens": 3, "draft_load_config": {"aws_secret_access_key": "abc"}}
    assert '"abc"' not in said(f"vllm serve acme/t -sc '{json.dumps(config)}'", "-o", "json")
    assert "=abc" not in said("vllm serve acme/t -sc '@NGRAM' --model-loader-extra-config.x_secret=abc")


@pytest.mark.parametrize("value", ["Basic dXNlcjpwYXNz", "Bearer abcdefgh", "x;AccountKey=abc=;y", '{"password": 12}'])
def test_shapes(value: str) -> None:
    assert holds_secret(value)


@pytest.mark.parametrize("name", [*NAMES, *KEYS, "--a.redis_password", "--b-config.hfToken"])
def test_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "tokenizer", "--tokenizer", "--max-num-batched-tokens", "num_speculative_tokens", "eos_token_id",
     "SSL_CERT_FILE", "--ssl-keyfile", "speculative_token_tree", "num_key_value_heads", "--allowed-headers",
     "--long-prefill-token-threshold", "topologyKey", "secretKeyRef", "HF_TOKEN_PATH", "suffix_decoding_min_token_prob",
     "VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE", "--enable-prompt-tokens-details",
     "--enable-request-id_headers", "--no-enable-request-id-headers", "--allowed_headers"],
)  # fmt: skip
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_what_is_no_secret_stays() -> None:
    arguments = ["--max-num-batched-tokens=8192", "--tokenizer=acme/tok", "--long-prefill-token-threshold=512"]
    config = {"method": "ngram", "num_speculative_tokens": 3, "speculative_token_tree": "[(0,)]", "eos_token_id": 2}
    pod = {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "volumes": [{"name": "s", "secret": {"secretName": "models", "items": [{"key": "a", "path": "b"}]}}],
        "imagePullSecrets": [{"name": "regcred"}],
        "automountServiceAccountToken": False,
        "containers": [{"name": "s", "args": ["--token-file=/t", *arguments], "env": [{"name": "SSL_CERT_FILE",
                        "value": "/x.pem"}, {"name": "A", "valueFrom": {"secretKeyRef": {"name": "n", "key": "k"}}}]}],
    }  # fmt: skip
    for data in (arguments, config, pod, json.dumps(config)):
        assert Redactor().data(data, pytest.fail) == data
    found = text(f"vllm serve acme/t -sc '{NGRAM}' {' '.join(arguments)}")
    assert (found.spec["engine"]["extraArgs"], found.lost) == (arguments, [])


def test_the_option_wins_over_the_variable_as_in_vllm() -> None:
    env = "env: [{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: old, key: k}}}, {name: KEY, valueFrom: @SOURCE}]"
    env = env.replace("@SOURCE", "{secretKeyRef: {name: new, key: k}}")
    found = text(manifest(f"args: [acme/t, -sc, '{NGRAM}', --api-key, $(KEY)]\n        {env}"))
    (key,) = [e for e in found.spec["engine"]["env"] if e["name"] == "VLLM_API_KEY"]
    assert key["valueFrom"]["secretKeyRef"]["name"] == "new"
    assert found.noted("--api-key", "ignores VLLM_API_KEY")
    same = text(manifest(f"args: [acme/t, -sc, '{NGRAM}', --api-key, $(VLLM_API_KEY)]\n        {env}"))
    (key,) = [e for e in same.spec["engine"]["env"] if e["name"] == "VLLM_API_KEY"]
    assert key["valueFrom"]["secretKeyRef"]["name"] == "old"
    assert not same.noted("ignores")


@pytest.mark.parametrize("words", ["=@SECRET", " @SECRET", "=ab"])
def test_a_dotted_option_with_a_secret_is_left_out_whole(words: str) -> None:
    option = "--model-loader-extra-config.aws_secret_access_key"
    found = text(f"vllm serve acme/t -sc '{NGRAM}' {option}{words.replace('@SECRET', SECRET)}")
    assert "extraArgs" not in found.spec.get("engine", {})
    assert found.missed(option, "password or token")
