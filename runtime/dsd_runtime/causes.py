"""Why engines end: the sentences of vLLM and its libraries, what each means, and the reason that a status gives it.

Pure. In the pod `last_words` judges the exception itself, with all that led to it, and writes the reason down in a line
that programs read; the operator and `kubectl dsd explain` judge the words where there is no such line. The sentences
are those of vLLM 0.32, transformers and the Hugging Face hub's client; the first that fits counts, so the more telling
ones stand first.
"""

import re
from dataclasses import dataclass
from typing import Final

MARK: Final = "dsd-cause: "
"""Begins the first line of a termination message whose cause is known; the reason follows."""


@dataclass(frozen=True)
class Cause:
    """A pattern in an engine's last words, the reason of the condition, what it means and what to do."""

    reason: str
    pattern: re.Pattern[str]
    cause: str
    fix: str


def _cause(reason: str, pattern: str, cause: str, fix: str) -> Cause:
    return Cause(reason, re.compile(pattern, re.IGNORECASE), cause, fix)


OFFLINE: Final = _cause(
    "ModelHubUnreachable",
    r"couldn't connect to '|Max retries exceeded|Name or service not known|Temporary failure in name resolution|"
    r"LocalEntryNotFoundError|OfflineModeIsEnabled|Network is unreachable|Cannot find the requested files in the",
    "the pod cannot reach the model hub, and the model is not in its cache",
    "Let the pods reach the hub (a proxy goes into spec.engine.env), or mount the model and give its path. With "
    "spec.cache.offline nothing is fetched: take it back until the cache holds the model, or fill the claim.",
)

KNOWN: Final = (
    _cause(
        "ModelAccessDenied",
        r"access (a )?gated repo|is a gated repository|GatedRepoError|Access to model .* is restricted|"
        r"awaiting a review",
        "the model is gated, and the token in the pod has no access to it (or there is none)",
        "Ask for access on the model's page, and name a Secret with a token that has it in spec.model.tokenSecretRef.",
    ),
    _cause(
        "ModelAccessDenied",
        r"Invalid user token|Invalid credentials in Authorization",
        "the hub does not accept the token",
        "Put a valid token into the Secret that spec.model.tokenSecretRef names, and restart the pods.",
    ),
    _cause(
        "ModelNotFound",
        r"RevisionNotFoundError|Revision Not Found|is not a valid git identifier|Invalid rev id",
        "the model's repository has no such revision",
        "Correct spec.model.revision or spec.drafter.revision.",
    ),
    _cause(
        "ModelNotFound",
        r"Repository Not Found|RepositoryNotFoundError|is not a local folder and is not a valid model identifier|"
        r"is not a local folder or a valid repository|HFValidationError|Repo id must|Invalid repository ID or local",
        "there is no such model, or it is private and the token cannot see it, or the path is not in the pod",
        "Check spec.model.name and spec.drafter.model; for a private one name a token in spec.model.tokenSecretRef; "
        "for a path mount the folder with spec.podTemplate.",
    ),
    _cause(
        "ModelAccessDenied",
        r"401 Client Error|403 Client Error|Client error '40[13] ",
        "the hub does not let the pod have the model",
        "Name a Secret with a token that may read it in spec.model.tokenSecretRef.",
    ),
    OFFLINE,
    _cause(
        "StorageFull",
        r"/dev/shm\b.*No space left on device|No space left on device.*/dev/shm\b|out of shared memory",
        "/dev/shm, through which vLLM's workers and NCCL talk, is full",
        "Raise spec.sharedMemory.sizeLimit, and spec.resources.limits.memory with it: what is in it counts there.",
    ),
    _cause(
        "StorageFull",
        r"No space left on device|Disk quota exceeded",
        "the disk is full: the model did not fit into the pod's cache or the node's disk",
        "Raise spec.cache.size where the cache has a claim (its class must let it grow), or keep weights on one with "
        "spec.cache; else raise the ephemeral-storage limit, or enlarge the volume that spec.podTemplate mounts.",
    ),
    _cause(
        "DeviceNotFound",
        r"Failed to infer device type|No CUDA GPUs are available|No HIP GPUs are available|"
        r"Found no NVIDIA driver|libcuda\.so",
        "the engine sees no GPU",
        "Ask for one in spec.resources.limits (nvidia.com/gpu: 1), and use an image that fits the node's GPUs.",
    ),
    _cause(
        "EngineOutOfMemory",
        r"CUDA out of memory|OutOfMemoryError|No available memory for the cache blocks|Free memory on device|"
        r"larger than the available KV cache|HIP out of memory",
        "the GPU's memory does not hold the model, the drafter and a KV cache of the asked length",
        "Lower spec.engine.maxModelLen or spec.engine.maxNumSeqs, prepare fewer K (spec.drafter.preparedTokens), split "
        "the model over more GPUs (spec.engine.tensorParallelSize), or take larger ones.",
    ),
    _cause(
        "EngineOutOfMemory",
        r"VLLM_CPU_KVCACHE_SPACE",
        "the memory that vLLM reserves for the KV cache on the CPU is too large or too small",
        "Set VLLM_CPU_KVCACHE_SPACE (GiB) in spec.engine.env to what fits into the container's memory limit.",
    ),
    _cause(
        "EngineOutOfMemory",
        r"DefaultCPUAllocator: can't allocate|Cannot allocate memory|\bMemoryError\b",
        "the node or the container has not the memory that the engine asked for",
        "Raise spec.resources.limits.memory, or let vLLM take less: spec.engine.maxNumSeqs, spec.engine.maxModelLen.",
    ),
    _cause(
        "EngineArgumentInvalid",
        r"unrecognized arguments|error: argument |expected one argument|invalid choice:",
        "vLLM does not understand an argument",
        "Correct spec.engine.extraArgs: one argument per item.",
    ),
    _cause(
        "ModelUnsupported",
        r"trust_remote_code=True|contains custom code which must be executed",
        "the model's repository holds code of its own, which vLLM runs only when told so",
        "If you trust its author, add --trust-remote-code to spec.engine.extraArgs.",
    ),
    _cause(
        "ModelUnsupported",
        r"Model architectures .* are not supported|does not recognize this architecture|model type .* but Transformers",
        "this vLLM does not know the model's architecture",
        "Use an image with a vLLM that supports it (spec.engine.image), or another model.",
    ),
    _cause(
        "ModelIncomplete",
        r"does not appear to have (a file|files) named|no file named|Cannot find any model weights|"
        r"Can't load the configuration of",
        "the model's folder or repository lacks a file that is needed",
        "Check that spec.model.name and spec.drafter.model hold a whole model: config, tokenizer and weights.",
    ),
    _cause(
        "StorageAccessDenied",
        r"Permission denied",
        "a file or folder may not be read or written",
        "Let the pods' group have the files: spec.cache.fsGroup for the cache's claim, "
        "podTemplate.spec.securityContext (fsGroup, runAsUser) for other volumes.",
    ),
    _cause(
        "SpeculationUnsupported",
        r"size of tensor|vocab size|draft model.* (must|should) (have|be)|target and draft",
        "the drafter does not fit the model",
        "Use a draft model that was made for this model: the same vocabulary, and the method it was trained for.",
    ),
    _cause(
        "SpeculationUnsupported",
        r"Unsupported speculative method|validation errors? for SpeculativeConfig|num_speculative_tokens|"
        r"speculative (config|decoding)\b.* (cannot|not (yet )?supported)|the schedule cannot be used",
        "vLLM cannot speculate in this way with this model: the method, the number of tokens or the drafter",
        "Change spec.drafter to what the message allows; docs/reference/methods.md says what each method needs.",
    ),
    _cause(
        "EngineArgumentInvalid",
        r"validation errors? for \w*(Config|Args)\b|^dsd-serve: |^UsageError: ",
        "vLLM refuses the value of an argument",
        "Change the field or the item of spec.engine.extraArgs that the message names.",
    ),
)


def known_cause(text: str) -> Cause | None:
    """The first cause whose pattern is in `text`."""
    return next((cause for cause in KNOWN if cause.pattern.search(text)), None)


def marked(text: str) -> tuple[str | None, str]:
    """The reason that the first line of a termination message names, None without one, and the message without it."""
    if not text.startswith(MARK):
        return None, text
    line, _, rest = text.partition("\n")
    return line.removeprefix(MARK).strip(), rest
