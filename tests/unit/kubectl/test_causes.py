"""What engines say when they end is understood, in the words of the libraries that are installed.

Each sentence is looked up in the library's own source: a release that says it in other words fails here.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from dsd_runtime.causes import KNOWN, known_cause
from kubectl_dsd.explain.causes import IMAGE, image_cause

_GATED = "You are trying to access a gated repo"
_MISSING = "is not a local folder and is not a valid model identifier"
_OFFLINE = "Cannot find the requested files in the disk cache"
_CUSTOM = "contains custom code which must be executed"

SENTENCES = [
    ("transformers/utils/hub.py", _GATED, "gated"),
    ("transformers/utils/hub.py", _MISSING, "no such model"),
    ("transformers/utils/hub.py", "We couldn't connect to '", "cannot reach the model hub"),
    ("transformers/utils/hub.py", "does not appear to have a file named", "lacks a file"),
    ("transformers/utils/hub.py", "is not a valid git identifier", "no such revision"),
    ("transformers/dynamic_module_utils.py", _CUSTOM, "code of its own"),
    ("transformers/models/auto/configuration_auto.py", "does not recognize this architecture", "architecture"),
    ("huggingface_hub/utils/_http.py", "Repository Not Found for url", "no such model"),
    ("huggingface_hub/utils/_http.py", "Revision Not Found for url", "no such revision"),
    ("huggingface_hub/utils/_validators.py", "Repo id must be in the form", "no such model"),
    ("huggingface_hub/file_download.py", _OFFLINE, "cannot reach the model hub"),
    ("huggingface_hub/hf_api.py", "Invalid user token", "does not accept the token"),
    ("vllm/transformers_utils/config.py", "Invalid repository ID or local directory specified", "no such model"),
    ("vllm/model_executor/model_loader/default_loader.py", "Cannot find any model weights", "lacks a file"),
    ("vllm/v1/core/kv_cache_utils.py", "No available memory for the cache blocks", "GPU's memory"),
    ("vllm/v1/core/kv_cache_utils.py", "larger than the available KV cache", "GPU's memory"),
    ("vllm/v1/worker/utils.py", "Free memory on device", "GPU's memory"),
    ("vllm/config/device.py", "Failed to infer device type", "sees no GPU"),
    ("vllm/config/speculative.py", "Target and draft model should have the same vocabulary size", "does not fit"),
]


@pytest.mark.parametrize(("module", "sentence", "cause"), SENTENCES)
def test_sentences_of_the_libraries(module: str, sentence: str, cause: str) -> None:
    package, _, rest = module.partition("/")
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    source = re.sub(r'"\s*\n\s*f?"', "", (Path(found.origin).parent / rest).read_text())
    assert sentence in source
    known = known_cause(f"RuntimeError: {sentence} something")
    assert known is not None
    assert cause in known.cause


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        # To those without a token the hub answers so for a repository that does not exist, and for a private one.
        ("401 Client Error. Repository Not Found for url: x. Invalid username or password.", "no such model"),
        ("401 Client Error. Cannot access gated repo for url x. Access to model a/b is restricted", "gated"),
        ("401 Client Error. Repository Not Found for url: x. Invalid credentials in Authorization header", "accept"),
        ("403 Client Error: Forbidden for url: x", "does not let the pod have"),
        ("OSError: [Errno 28] No space left on device: '/home/x'", "the disk is full"),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'", "/dev/shm"),
        ("shared memory segment /dev/shm/nccl-1 (size 9637888), error: No space left on device (28)", "/dev/shm"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "GPU's memory"),
        ("vllm serve: error: unrecognized arguments: --sed=0", "does not understand an argument"),
        ("PermissionError: [Errno 13] Permission denied: '/models/x'", "may not be read"),
        ("ValueError: Model architectures ['X'] are not supported for now.", "architecture"),
    ],
)
def test_the_more_telling_cause_counts(text: str, cause: str) -> None:
    known = known_cause(text)
    assert known is not None
    assert cause in known.cause


PULLING = 'failed to pull and unpack image "{0}": failed to resolve reference "{0}": '


@pytest.mark.parametrize(
    "image", ["r.example:5000/acme/tls/eof-denied:v429", "r.example/x509@sha256:429eof", "eof:429"]
)
@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("{0}: not found", "no such image"),
        ("no match for platform in manifest sha256:0429eff: not found", "architecture"),
        ("unexpected status from HEAD request to https://r.example/v2/tls/manifests/429: 401 Unauthorized", "refuses"),
        ("unexpected status code https://r.example/v2/x: 429 Too Many Requests", "limits"),
        ('Head "https://r.example/v2/x": dial tcp 10.0.0.9:443: connect: permission denied', "cannot reach"),
        ('Get "https://r.example/v2/": net/http: TLS handshake timeout', "cannot reach"),
        ('Get "https://r.example/v2/": dial tcp 10.0.0.9:443: i/o timeout', "cannot reach"),
        ("unexpected EOF", "cannot reach"),
        ("something else", ""),
    ],
)
def test_the_name_of_an_image_says_nothing_of_the_cause(image: str, words: str, cause: str) -> None:
    found = image_cause((PULLING + words).format(image), image)
    assert (cause in found.cause) if found is not None else not cause
    assert (found is not None) == bool(cause)


def test_what_is_not_known_is_not_guessed() -> None:
    assert known_cause("ValueError: something that nobody has seen") is None
    assert image_cause("a registry with words of its own") is None


def test_every_cause_says_what_to_do() -> None:
    assert all(cause.cause and cause.fix.endswith(".") for cause in (*KNOWN, *IMAGE))
