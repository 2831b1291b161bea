"""Whole numbers as people write them in JSON and on command lines."""

import re
from typing import Any, Final

_HUMAN: Final = re.compile(r"(\d+(?:\.\d+)?)([kmgtKMGT])")
_UNITS: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
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


def human(text: str) -> int | None:
    """A number as vLLM's options for lengths take it: 4096, 16k, 25.6k, 16K (`human_readable_int`); None for none.

    Small letters are decimal, capitals binary, and those take no fraction.
    """
    text = text.strip()
    if match := _HUMAN.fullmatch(text):
        number, unit = match.groups()
        return None if unit.isupper() and "." in number else int(float(number) * _UNITS[unit])
    return whole(text)
