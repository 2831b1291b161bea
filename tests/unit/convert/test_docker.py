"""`docker run` lines and their like."""

import pytest

from tests.unit.convert.converted import NGRAM, same_engine, text, words

pytestmark = pytest.mark.engine

LINE = (
    """docker run --gpus '"device=0,1"' -e HF_TOKEN=hf_xxxxxxxxxxxx -e VLLM_USE_V1=1 -v /data:/root/.cache """
    "-p 8001:8000 --ipc=host vllm/vllm-openai:v0.11.0 --model acme/t --api-key s3cr3t-s3cr3t --host 0.0.0.0 "
    f"--port 8000 --speculative-config '{NGRAM}'"
)


def test_a_whole_line() -> None:
    found = text(LINE)
    assert "read as a docker run line" in found.stderr
    assert found.spec["model"] == {"name": "acme/t", "tokenSecretRef": {"name": "t-hf-token", "key": "token"}}
    assert found.spec["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    key = {"secretKeyRef": {"name": "t-env", "key": "VLLM_API_KEY"}}
    assert found.spec["engine"] == {"env": [{"name": "VLLM_API_KEY", "valueFrom": key}]}
    assert found.secrets == [
        'kubectl create secret generic t-hf-token --from-literal=token="$HF_TOKEN"',
        'kubectl create secret generic t-env --from-literal=VLLM_API_KEY="$VLLM_API_KEY"',
    ]
    assert found.lost == []
    assert found.noted("VLLM_USE_V1", "knows no such variable")
    assert found.noted("image", "v0.11.0", "0.32.0")
    assert not any("8000" in note or "0.0.0.0" in note for note in found.notes)
    assert "xxxx" not in found.stdout + found.stderr
    assert "s3cr3t" not in found.stdout + found.stderr
    same_engine(["--model", "acme/t", "-sc", NGRAM], found.resource)


IMAGE = "vllm/vllm-openai:v0.32.0"


@pytest.mark.parametrize(
    "line",
    [
        ["docker", "run", "-d", "--rm", IMAGE, "acme/t"],
        ["docker", "run", "-itd", "--name", "x", IMAGE, "acme/t"],
        ["docker", "container", "run", "-dp8000:8000", IMAGE, "--model", "acme/t"],
        ["podman", "run", "--replace", "--label=a=b", "-eFOO=bar", IMAGE, "--model=acme/t"],
        ["sudo", "docker", "run", "-e", "FOO=bar", IMAGE, "vllm", "serve", "acme/t"],
        ["nerdctl", "run", "--entrypoint", "vllm", IMAGE, "serve", "acme/t"],
        [
            "docker",
            "run",
            "--entrypoint=python3",
            IMAGE,
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            "acme/t",
        ],
        ["docker", "run", "--restart", "always", IMAGE, "bash", "-c", f"vllm serve acme/t -sc '{NGRAM}'"],
    ],
)
def test_what_is_dockers_and_what_is_the_engines(line: list[str]) -> None:
    found = words(*line, *([] if "bash" in line else ["-sc", NGRAM]))
    assert found.spec["model"]["name"] == "acme/t"
    assert found.spec["drafter"]["method"] == "ngram"
    assert found.lost == []
    assert [e["name"] for e in found.spec.get("engine", {}).get("env", [])] == [
        "FOO" for word in line if "FOO=" in word
    ]


@pytest.mark.parametrize(
    ("options", "ranks", "count"),
    [
        (["--gpus", "2"], 1, 2),
        (["--gpus=all"], 4, 4),
        (["--gpus", '"device=0,1,2"'], 1, 3),
        (["--gpus", "count=2,capabilities=gpu"], 1, 2),
        (["--device", "nvidia.com/gpu=all"], 4, 4),
        (["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"], 1, 2),
        (["--gpus", "all", "-e", "CUDA_VISIBLE_DEVICES=0,3"], 1, 2),
        ([], 4, 4),
    ],
)
def test_gpus(options: list[str], ranks: int, count: int) -> None:
    found = words("docker", "run", *options, IMAGE, "acme/t", "-tp", str(ranks), "-sc", NGRAM)
    assert found.spec["resources"]["limits"]["nvidia.com/gpu"] == count


@pytest.mark.parametrize(("size", "limit"), [("16g", "16Gi"), ("512mb", "512Mi"), ("1073741824", "1073741824")])
def test_sizes(size: str, limit: str) -> None:
    found = words("docker", "run", "--shm-size", size, "-m", size, "--cpus", "2.5", IMAGE, "acme/t", "-sc", NGRAM)
    assert found.spec["sharedMemory"] == {"sizeLimit": limit}
    assert found.spec["resources"]["limits"] == {"memory": limit, "cpu": "2.5", "nvidia.com/gpu": 1}


def test_folders_of_the_machine_are_not_in_a_pod() -> None:
    found = words(
        "docker", "run", "-v", "/srv/m:/models", "-v", "c:/root/.cache/huggingface", IMAGE, "/models/t", "-sc", NGRAM
    )
    assert found.missed("volume /models", "/srv/m", "podTemplate")
    assert found.noted("volume /root/.cache/huggingface", "cache")


@pytest.mark.parametrize("image", ["registry.example/own/vllm:1", "own"])
def test_an_image_of_ones_own_is_not_carried_over(image: str) -> None:
    found = words("docker", "run", image, "acme/t", "-sc", NGRAM)
    assert found.missed("image", image, "--image")
    chosen = words("docker", "run", image, "acme/t", "-sc", NGRAM, options=["--image", "registry.example/dsd:1"])
    assert chosen.spec["engine"]["image"] == "registry.example/dsd:1"
    assert chosen.lost == []


def test_an_unknown_option_is_told() -> None:
    assert words("docker", "run", "--userns", "host", IMAGE, "acme/t", "-sc", NGRAM).missed("docker --userns")


def test_dollars_in_variables_stay_dollars() -> None:
    """Kubernetes fills in `$(NAME)` in a variable's value; a shell's single quotes meant it literally."""
    found = text(f"docker run -e 'PROMPT=$(HOME) costs $5' {IMAGE} acme/t -sc '{NGRAM}'")
    assert found.spec["engine"]["env"] == [{"name": "PROMPT", "value": "$$(HOME) costs $$5"}]


def test_variables_without_a_value() -> None:
    line = ["docker", "run", "-e", "HF_TOKEN", "-e", "NCCL_DEBUG", IMAGE, "acme/t", "-sc", NGRAM]
    assert "env NCCL_DEBUG: its value is not in the input" in words(*line).stderr
    found = words(*line, options=["--set", "NCCL_DEBUG=INFO"])
    assert found.spec["engine"]["env"] == [{"name": "NCCL_DEBUG", "value": "INFO"}]


def test_without_an_image() -> None:
    assert "no image is named" in words("docker", "run", "--gpus", "all").stderr
