"""Lists of arguments as YAML files hold them."""

import re
from collections.abc import Sequence
from typing import Final

from dsd_runtime.options import SPLIT_ITEM_PATTERN
from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.shell import words_of
from kubectl_dsd.convert.variables import Variables

_SPLIT: Final = re.compile(SPLIT_ITEM_PATTERN)


def split_items(items: Sequence[str], report: Report) -> list[str]:
    """`items`, those that hold an option and its value (`- --seed 0`) split: vLLM would refuse them as they are."""
    words: list[str] = []
    for item in items:
        if _SPLIT.match(item):
            name = item.split()[0]
            report.note(name, "option and value stand in one item, which vLLM does not take; split")
            words += words_of(item, Variables(report))
        else:
            words.append(item)
    return words
