"""Whole numbers as people write them in JSON."""

import re
from typing import Any, Final

_WHOLE: Final = re.compile(r"\s*[+-]?\d{1,18}\s*")


def whole(value: Any) -> int | None:
    """The whole number that `value` stands for: 3, 3.0 and "3" as vLLM reads them, else None.

    `true` is none, though vLLM takes it for 1: nobody means that.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else None
