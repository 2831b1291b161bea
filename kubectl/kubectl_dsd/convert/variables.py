"""`$NAME`, `${NAME:-default}`, `$(command)`: what is filled in, and what cannot be known.

What cannot be known stays in the text as a mark (a NUL cannot stand in a command line), so that it hurts only where the
value is needed: an unknown HF_TOKEN becomes a Secret anyway, an unknown K ends the conversion.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubectl_dsd.convert.report import Report

_MARK: Final = re.compile("\0([^\0]*)\0")
_PLANE: Final = 0xFFFE
_SHIFT: Final = 0xF0000
"""Moves a mark's text out of reach: the words that hold it may be split by a shell's rules once more."""

REFERENCE: Final = re.compile(
    r"\$\{(?P<name>[A-Za-z_]\w*)(?:(?P<operator>:?[-=?+])(?P<word>[^}]*))?\}|\$(?P<plain>[A-Za-z_]\w*)"
)


@dataclass
class Variables:
    """Values by name. `wanted` are those that the person gave, which nothing in the input overrides."""

    report: Report
    wanted: Mapping[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> None:
        """An assignment in the input; the last one before a use counts, as in a shell."""
        self.known[name] = value

    def get(self, name: str) -> str | None:
        """The value, None where it is not known."""
        return self.wanted.get(name, self.known.get(name))

    def fill(self, match: re.Match[str]) -> str:
        """The text for one match of `REFERENCE`."""
        name = match["name"] or match["plain"]
        value = self.get(name)
        operator = match["operator"] or ""
        if operator.endswith("+"):
            return (match["word"] or "") if value else "" if value is not None else unknown(f"${{{name}}}")
        if value is not None and (value or not operator.startswith(":")):
            return value
        if operator.endswith(("-", "=")):
            self.report.note(f"${name}", f"is not known; its default is used. Another value: --set {name}=VALUE")
            return match["word"] or ""
        return unknown(f"${{{name}}}")


def unknown(what: str) -> str:
    """The mark of something that cannot be known."""
    hidden = "".join(chr(_SHIFT + ord(c)) for c in what if ord(c) < _PLANE)
    return f"\0{hidden}\0"


def unknowns(text: str) -> list[str]:
    """What is not known in `text`."""
    return [_plain(hidden) for hidden in _MARK.findall(text)]


def shown(text: str) -> str:
    """`text` with the marks as they were written."""
    return _MARK.sub(lambda match: _plain(match[1]), text)


def _plain(hidden: str) -> str:
    return "".join(chr(ord(c) - _SHIFT) if ord(c) >= _SHIFT else c for c in hidden)


def explain(what: str) -> str:
    """What to do about something unknown."""
    if what.startswith("$(") and not what.startswith("$(("):
        return f"{what} is for a shell to run; write what it prints in its place"
    if what == "~":
        return "~ is the home of whoever ran this; write the path inside the pod in its place"
    name = what.strip("${}")
    if name.isidentifier():
        return f"the value of {what} is not known; give it with --set {name}=VALUE"
    return f"{what} cannot be known here; write its value in its place"
