"""Services of compose files."""

import pytest

from tests.unit.convert.converted import NGRAM, text

FILE = f"""
x-common: &common
  restart: unless-stopped
services:
  proxy:
    image: nginx
  engine:
    <<: *common
    image: vllm/vllm-openai:v0.32.0
    container_name: llama
    shm_size: 16gb
    command: >
      --model ${{MODEL:-acme/t}}
      --max-num-seqs 64
      --speculative-config '{NGRAM}'
    environment:
      HF_TOKEN: ${{HF_TOKEN}}
      NCCL_DEBUG: INFO
      PRICE: "$$5"
    deploy:
      replicas: 2
      resources: {{reservations: {{devices: [{{driver: nvidia, count: 2, capabilities: [gpu]}}]}}}}
"""


def test_a_whole_file() -> None:
    found = text(FILE)
    assert "read as a compose file" in found.stderr
    assert found.resource["metadata"] == {"name": "llama"}
    assert found.spec["model"] == {"name": "acme/t", "tokenSecretRef": {"name": "llama-hf-token", "key": "token"}}
    assert found.spec["engine"] == {
        "maxNumSeqs": 64,
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "PRICE", "value": "$$5"}],
    }
    assert found.spec["replicas"] == 2
    assert found.spec["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    assert found.spec["sharedMemory"] == {"sizeLimit": "16Gi"}
    assert found.lost == []
    assert found.noted("$MODEL", "its default is used")
    assert text(FILE, "--set", "MODEL=acme/u").spec["model"]["name"] == "acme/u"


COMPACT = NGRAM.replace(" ", "")
ESCAPED = NGRAM.replace('"', '\\\\\\"').replace(" ", "")


@pytest.mark.parametrize(
    "command",
    [
        f"[--model, acme/t, --max-num-seqs, 64, --speculative-config, '{NGRAM}']",
        f"\n    - vllm\n    - serve\n    - acme/t\n    - --max-num-seqs 64\n    - --speculative-config '{COMPACT}'",
        f'"--model acme/t --max-num-seqs 64 --speculative-config {ESCAPED}"',
    ],
)
def test_forms_of_a_command(command: str) -> None:
    found = text(f"services:\n  vllm:\n    image: vllm/vllm-openai:v0.32.0\n    command: {command}\n")
    assert found.spec["model"]["name"] == "acme/t"
    assert found.spec["engine"] == {"maxNumSeqs": 64}


def test_a_shell_inside_a_service() -> None:
    found = text(
        "services:\n  vllm:\n    image: x/vllm\n    environment: [K=3]\n    entrypoint: [bash, -c]\n    command:\n"
        "    - vllm serve acme/t --spec-method ngram --spec-tokens $$K\n"
    )
    assert found.spec["drafter"] == {"method": "ngram", "numSpeculativeTokens": 3}


def test_an_unknown_value_is_asked_for() -> None:
    found = text("services:\n  vllm:\n    image: x/vllm\n    command: acme/t --speculative-config ${SPEC}\n")
    assert found.code == 2
    assert "--set SPEC=VALUE" in found.stderr


def test_two_services() -> None:
    service = f"{{image: vllm/vllm-openai:v0.32.0, command: [acme/t, -sc, '{NGRAM}']}}"
    content = f"services:\n  one: {service}\n  two: {service}\n"
    assert "Choose with --select NAME; there are: one, two" in text(content).stderr
    assert text(content, "--select", "two").resource["metadata"]["name"] == "two"


def test_what_is_not_carried_over_is_told() -> None:
    found = text(
        f"services:\n  vllm:\n    image: vllm/vllm-openai:v0.32.0\n    command: [acme/t, -sc, '{NGRAM}']\n"
        "    env_file: .env\n    user: '1000'\n    volumes: ['/srv:/models:ro', {type: bind, source: /a, target: /b}]\n"
    )
    for lost in ("env_file", "services.vllm.user", "volume /models", "volume /b"):
        assert found.missed(lost)
