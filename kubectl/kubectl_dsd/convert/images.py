"""Images: which of them can run an engine of ours.

An engine needs the dsd-runtime package in its image, so an image of plain vLLM cannot be carried over as it is: it
would stop at `dsd-serve: not found`.
"""

import re
from typing import Final

from dsd_runtime.vllm_options import VLLM_VERSION
from kubectl_dsd.convert.report import Report

_PLAIN: Final = re.compile(
    r"(?:docker\.io/)?(?:vllm/vllm-openai|lmcache/vllm-openai)(?:-\w+)?(?::v?(?P<tag>[^@]*))?(?:@.*)?"
)


def judge(image: str, report: Report) -> None:
    """Say what becomes of the image that the engine ran with."""
    found = _PLAIN.fullmatch(image)
    if found is None:
        report.lose(
            "image",
            f"{image} is not carried over: an engine needs an image with dsd-runtime, so the operator's own is used. "
            "If this one adds something that you need, build one on top of the operator's and give it with --image",
        )
    elif found["tag"] is None or not found["tag"].startswith(VLLM_VERSION):
        version = f"vLLM {found['tag']}" if found["tag"] else "the image's vLLM"
        report.note(
            "image",
            f"{image} has no dsd-runtime; the operator's image is used, with vLLM {VLLM_VERSION} instead of {version}. "
            "What changed between them may change results: compare before you switch traffic",
        )
