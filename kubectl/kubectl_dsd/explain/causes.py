"""Why an image cannot be pulled. Pure. (Why an engine ends is in `dsd_runtime.causes`, which the pod uses too.)"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ImageCause:
    """A pattern in the kubelet's words, what it means and what to do."""

    pattern: re.Pattern[str]
    cause: str
    fix: str


def _cause(pattern: str, cause: str, fix: str) -> ImageCause:
    return ImageCause(re.compile(pattern, re.IGNORECASE), cause, fix)


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


def image_cause(text: str, image: str = "") -> ImageCause | None:
    """The first that fits what `text` says besides names, that of the `image` among them."""
    words = _NAMES.sub(" ", text.replace(image, " ") if image else text)
    return next((cause for cause in IMAGE if cause.pattern.search(words)), None)
