"""What engines say when they end, and what it means. Pure.

The sentences are those of vLLM 0.32, transformers and the Hugging Face hub's client; the first that fits counts, so the
more telling ones stand first.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Cause:
    """A pattern in an engine's last words, what it means and what to do."""

    pattern: re.Pattern[str]
    cause: str
    fix: str


def _cause(pattern: str, cause: str, fix: str) -> Cause:
    return Cause(re.compile(pattern, re.IGNORECASE), cause, fix)


OFFLINE: Final = _cause(
    r"couldn't connect to '|Max retries exceeded|Name or service not known|Temporary failure in name resolution|"
    r"LocalEntryNotFoundError|OfflineModeIsEnabled|Network is unreachable|Cannot find the requested files in the",
    "the pod cannot reach the model hub, and the model is not in its cache",
    "Let the pods reach the hub (a proxy goes into spec.engine.env), or mount the model and give its path.",
)

KNOWN: Final = (
    _cause(
        r"gated repo|is a gated repository|GatedRepoError|Access to model .* is restricted|awaiting a review",
        "the model is gated, and the token in the pod has no access to it (or there is none)",
        "Ask for access on the model's page, and name a Secret with a token that has it in spec.model.tokenSecretRef.",
    ),
    _cause(
        r"Invalid user token|Invalid credentials in Authorization",
        "the hub does not accept the token",
        "Put a valid token into the Secret that spec.model.tokenSecretRef names, and restart the pods.",
    ),
    _cause(
        r"RevisionNotFoundError|Revision Not Found|is not a valid git identifier|Invalid rev id",
        "the model's repository has no such revision",
        "Correct spec.model.revision or spec.drafter.revision.",
    ),
    _cause(
        r"Repository Not Found|RepositoryNotFoundError|is not a local folder and is not a valid model identifier|"
        r"is not a local folder or a valid repository|HFValidationError|Repo id must|Invalid repository ID or local",
        "there is no such model, or it is private and the token cannot see it, or the path is not in the pod",
        "Check spec.model.name and spec.drafter.model; for a private one name a token in spec.model.tokenSecretRef; "
        "for a path mount the folder with spec.podTemplate.",
    ),
    _cause(
        r"401 Client Error|403 Client Error",
        "the hub does not let the pod have the model",
        "Name a Secret with a token that may read it in spec.model.tokenSecretRef.",
    ),
    OFFLINE,
    _cause(
        r"No space left on device|Disk quota exceeded",
        "the disk is full: the model did not fit into the pod's cache or the node's disk",
        "Give the pods a larger volume for the cache with spec.podTemplate, or raise the ephemeral-storage request.",
    ),
    _cause(
        r"Failed to infer device type|No CUDA GPUs are available|No HIP GPUs are available|"
        r"Found no NVIDIA driver|libcuda\.so",
        "the engine sees no GPU",
        "Ask for one in spec.resources.limits (nvidia.com/gpu: 1), and use an image that fits the node's GPUs.",
    ),
    _cause(
        r"CUDA out of memory|OutOfMemoryError|No available memory for the cache blocks|Free memory on device|"
        r"larger than the available KV cache|HIP out of memory",
        "the GPU's memory does not hold the model, the drafter and a KV cache of the asked length",
        "Lower spec.engine.maxModelLen or spec.engine.maxNumSeqs, prepare fewer K (spec.drafter.preparedTokens), split "
        "the model over more GPUs (spec.engine.tensorParallelSize), or take larger ones.",
    ),
    _cause(
        r"unrecognized arguments|error: argument |expected one argument|invalid choice:",
        "vLLM does not understand an argument",
        "Correct spec.engine.extraArgs: one argument per item.",
    ),
    _cause(
        r"trust_remote_code=True|contains custom code which must be executed",
        "the model's repository holds code of its own, which vLLM runs only when told so",
        "If you trust its author, add --trust-remote-code to spec.engine.extraArgs.",
    ),
    _cause(
        r"Model architectures .* are not supported|does not recognize this architecture|model type .* but Transformers",
        "this vLLM does not know the model's architecture",
        "Use an image with a vLLM that supports it (spec.engine.image), or another model.",
    ),
    _cause(
        r"does not appear to have (a file|files) named|no file named|Cannot find any model weights|"
        r"Can't load the configuration of",
        "the model's folder or repository lacks a file that is needed",
        "Check that spec.model.name and spec.drafter.model hold a whole model: config, tokenizer and weights.",
    ),
    _cause(
        r"VLLM_CPU_KVCACHE_SPACE",
        "the memory that vLLM reserves for the KV cache on the CPU is too large or too small",
        "Set VLLM_CPU_KVCACHE_SPACE (GiB) in spec.engine.env to what fits into the container's memory limit.",
    ),
    _cause(
        r"Permission denied",
        "a file or folder may not be read or written",
        "Check the volumes' owners against podTemplate.spec.securityContext (fsGroup, runAsUser).",
    ),
    _cause(
        r"size of tensor|vocab size|draft model.* (must|should) (have|be)|target and draft",
        "the drafter does not fit the model",
        "Use a draft model that was made for this model: the same vocabulary, and the method it was trained for.",
    ),
)


def known_cause(text: str) -> Cause | None:
    """The first cause whose pattern is in `text`."""
    return next((cause for cause in KNOWN if cause.pattern.search(text)), None)


IMAGE: Final = (
    _cause(
        r"InvalidImageName|invalid reference format|couldn't parse image",
        "the image's name is not a valid one",
        "Correct spec.engine.image.",
    ),
    _cause(
        r"ErrImageNeverPull",
        "the image is not on the node, and may not be pulled there",
        "Set spec.engine.imagePullPolicy to IfNotPresent, or bring the image to the node.",
    ),
    _cause(
        r"no match for platform|no matching manifest",
        "the image does not exist for the node's architecture",
        "Use an image for it, or choose other nodes with podTemplate.spec.nodeSelector.",
    ),
    _cause(
        r"toomanyrequests|too many requests|rate limit|\b429\b",
        "the registry limits how much may be pulled",
        "Pull with an account (imagePullSecrets in spec.podTemplate.spec), or from a mirror.",
    ),
    _cause(  # before a refusal: "connect: permission denied" is none of the registry's
        r"no such host|i/o timeout|connection refused|\bdial tcp\b|\btls\b|\bx509\b|\bEOF\b|server misbehaving",
        "the node cannot reach the registry",
        "Check the registry's address in spec.engine.image, and the node's network, proxy and trusted certificates.",
    ),
    _cause(
        r"unauthorized|authentication required|\bdenied\b|authorization failed|403 Forbidden|401 Unauthorized",
        "the registry refuses: the image is private, or does not exist",
        "Name a pull secret in spec.podTemplate.spec.imagePullSecrets, and check the name in spec.engine.image.",
    ),
    _cause(
        r"not found|manifest unknown|NotFound",
        "the registry has no such image or tag",
        "Correct spec.engine.image.",
    ),
)
"""Why an image cannot be pulled, by the kubelet's words."""


_NAMES: Final = re.compile(r'"[^"]*"|\b\w+://\S+|\bsha256:[0-9a-f]+|(?<!\S)(?!i/o\b)[\w.-]+(?::\d+)?/[\w./:@-]+')
"""What messages name: quoted texts, addresses, digests, references of images. Any word may be part of a name."""


def image_cause(text: str, image: str = "") -> Cause | None:
    """The first that fits what `text` says besides names, that of the `image` among them."""
    words = _NAMES.sub(" ", text.replace(image, " ") if image else text)
    return next((cause for cause in IMAGE if cause.pattern.search(words)), None)
