"""Splits shell text into commands and words, as a shell does before it runs anything.

`shlex` forgets which words were quoted, so it can neither fill in variables nor see that quotes were missing. Here a
variable is filled in from what the text itself assigns, and what only a running shell would know is marked
(`variables`). Nothing is run. Control flow is not followed: what is assigned inside it stays open.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dsd_runtime.convert import ConvertError
from dsd_runtime.schedule import Problem
from kubectl_dsd.convert.variables import REFERENCE, Variables, unknown

_OPENING: Final = ("if", "while", "until", "for", "case", "select")
_CLOSING: Final = ("fi", "done", "esac")
_KEYWORDS: Final = (*_OPENING, *_CLOSING, "then", "else", "elif", "do", "{", "!", "time")
ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)

_TOKENS: Final = {
    "broken": r"\\[ \t]+\r?\n",
    "joined": r"\\\r?\n",
    "escape": r"\\(?s:.)",
    "single": r"'[^']*'",
    "ansi": r"\$'(?:[^'\\]|\\(?s:.))*'",
    "double": r'"(?:\$\([^()]*\)|[^"\\]|\\(?s:.))*"',
    "comment": r"(?<![^\s;&|(])#[^\n]*",
    "arithmetic": r"\$\(\(.*?\)\)",
    "command": r"\$\([^()]*(?:\([^()]*\)[^()]*)*\)|`[^`]*`",
    "list": r"\$\{[A-Za-z_]\w*\[[@*]\]\}",
    "variable": REFERENCE.pattern,
    "tilde": r"(?<![^\s;&|(])~(?=[/\s;&|)]|$)",
    "special": r"\$[@*#?!0-9-]|\$\{[^}]*\}",
    "array": r"(?<![^\s;&|(])[A-Za-z_]\w*\+?=\(",
    "redirect": r"(?:(?<![^\s])\d+)?(?:>>|>&|>\||<<<|<<-?|<&|&>>?|[<>])&?",
    "end": r"\n|;;?|&&|\|[|&]?|&|[()]",
    "space": r"[ \t\r]+",
    "text": r"[^\s\\'\"$`;&|()<>#]+",
    "other": r"(?s:.)",
}
_TOKEN: Final = re.compile("|".join(f"(?P<t_{name}>{pattern})" for name, pattern in _TOKENS.items()))
_IN_QUOTES: Final = re.compile(
    rf'(?P<t_escape>\\["$`\\\n])|(?P<t_arithmetic>\$\(\(.*?\)\))|(?P<t_command>\$\([^()]*\)|`[^`]*`)'
    rf"|(?P<t_list>{_TOKENS['list']})|(?P<t_variable>{REFERENCE.pattern})|(?P<t_special>{_TOKENS['special']})",
    re.DOTALL,
)
_ANSI: Final = re.compile(r"\\(n|t|r|\\|'|\"|x[0-9a-fA-F]{1,2})")
_ANSI_TEXT: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


@dataclass
class Command:
    """One simple command: assignments before it, then its words."""

    words: list[str] = field(default_factory=list)
    assigned: dict[str, str] = field(default_factory=dict)


class Splitter:
    """Reads one text; `commands` are in order, `exported` what the text exports to those after it."""

    def __init__(self, variables: Variables, *, plain: bool = False) -> None:
        """`plain`: the text is one command without operators, in which a new line is white space."""
        self.variables = variables
        self._plain = plain
        self.commands: list[Command] = []
        self.exported: dict[str, str] = {}
        self._arrays: dict[str, list[str]] = {}
        self._words: list[str] = []
        self._word: str | None = None
        self._array: tuple[str, list[str]] | None = None
        self._skip_word = False
        self._depth = 0
        self._maybe = False
        """Whether the command is run only if the one before it succeeds, or fails."""

    def split(self, text: str) -> list[Command]:
        """The commands of `text`; raises ConvertError for a quote that does not end."""
        handlers: Mapping[str, Callable[[re.Match[str]], None]] = {
            name: getattr(self, f"_on_{name}") for name in _TOKENS if name != "joined"
        }
        for match in _TOKEN.finditer(text):
            kind = next(name for name in _TOKENS if match[f"t_{name}"] is not None)
            if kind != "joined":
                handlers[kind](match)
        self._end_command()
        return self.commands

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is not None and not self._skip_word:
            self._words.append(self._word)
        if self._word is not None:
            self._skip_word = False
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        words, self._words, self._skip_word = self._words, [], False
        if not words:
            return
        if self.commands and words[0].startswith("-") and len(words[0]) > 1:
            # After a comment between its lines a shell would end the command; nobody means that.
            self.variables.report.note(words[0].partition("=")[0], "stands on a line of its own; joined to the command")
            self.commands[-1].words += words
            return
        words = self._without_keywords(words)
        command = Command()
        while words and (found := ASSIGNMENT.fullmatch(words[0])):
            command.assigned[found[1]] = found[2]
            words.pop(0)
        command.words = words
        self._remember(command)
        self.commands.append(command)

    def _remember(self, command: Command) -> None:
        """Assignments that hold for the commands after this one."""
        assigned = dict(command.assigned) if not command.words else {}
        if command.words[:1] in (["export"], ["declare"], ["readonly"], ["local"]):
            pairs = [found for word in command.words[1:] if (found := ASSIGNMENT.fullmatch(word))]
            assigned = {found[1]: found[2] for found in pairs}
            named = [word for word in command.words[1:] if word in self.variables.known]
            self.exported |= {name: self.variables.known[name] for name in named}
            if command.words[0] == "export" or "-x" in command.words:
                self.exported |= assigned
        for name, value in assigned.items():
            open_ = (self._depth > 0 or self._maybe) and self.variables.known.get(name) != value
            self.variables.set(name, unknown(f"${name}") if open_ else value)

    def _without_keywords(self, words: list[str]) -> list[str]:
        """The command behind `then`, `do` and the like. What a loop goes through is not known."""
        while words and words[0] in _KEYWORDS and not self._plain:
            self._depth = max(0, self._depth + (words[0] in _OPENING) - (words[0] in _CLOSING))
            if words[0] in ("for", "select") and len(words) > 1:
                self.variables.set(words[1], unknown(f"${words[1]}"))
                return []
            words = words[1:]
        return words

    # One method for each kind of token.

    def _on_broken(self, _: re.Match[str]) -> None:
        self.variables.report.note("", "a backslash with a space after it ends no line; read as if there were no space")

    def _on_escape(self, match: re.Match[str]) -> None:
        self._add(match[0][1:])

    def _on_single(self, match: re.Match[str]) -> None:
        self._add(match[0][1:-1])

    def _on_ansi(self, match: re.Match[str]) -> None:
        self._add(_ANSI.sub(lambda m: _ANSI_TEXT.get(m[1]) or chr(int(m[1][1:], 16)), match[0][2:-1]))

    def _on_double(self, match: re.Match[str]) -> None:
        inner = match[0][1:-1]
        if (found := re.fullmatch(_TOKENS["list"], inner)) and (items := self._items(found[0])) is not None:
            for item in items:
                self._add(item)
                self._end_word()
            return
        self._add(_IN_QUOTES.sub(self._quoted, inner))

    def _quoted(self, match: re.Match[str]) -> str:
        if match["t_escape"]:
            return "" if match[0][1] == "\n" else match[0][1]
        return self._value(match)

    def _on_comment(self, _: re.Match[str]) -> None:
        self._end_word()

    def _on_arithmetic(self, match: re.Match[str]) -> None:
        self._add(unknown(match[0]))

    def _on_command(self, match: re.Match[str]) -> None:
        self._add(unknown(_command(match[0])))

    def _on_list(self, match: re.Match[str]) -> None:
        self._spread(" ".join(items) if (items := self._items(match[0])) is not None else unknown(match[0]))

    def _on_variable(self, match: re.Match[str]) -> None:
        self._spread(self.variables.fill(match))

    def _on_tilde(self, match: re.Match[str]) -> None:
        self._add(match[0] if self._plain else unknown(match[0]))

    def _on_special(self, match: re.Match[str]) -> None:
        self._spread(self._value(match))

    def _value(self, match: re.Match[str]) -> str:
        """The text of a reference; every one that is not a plain variable stays unknown."""
        if match["name"] or match["plain"]:
            return self.variables.fill(match)
        if match[0] in ("$@", "$*"):
            self.variables.report.note(match[0], "stands for arguments from outside; read as none")
            return ""
        if match.groupdict().get("t_list") and (items := self._items(match[0])) is not None:
            return " ".join(items)
        return unknown(_command(match[0]) if match.groupdict().get("t_command") else match[0])

    def _items(self, reference: str) -> list[str] | None:
        return self._arrays.get(reference[2:].partition("[")[0])

    def _spread(self, value: str) -> None:
        """An unquoted value falls into words at its white space."""
        first, *rest = re.split(r"[ \t\n]+", value)
        if first:
            self._add(first)
        for part in rest:
            self._end_word()
            if part:
                self._add(part)

    def _on_array(self, match: re.Match[str]) -> None:
        self._end_word()
        name = match[0].rstrip("+=(")
        if "+=" not in match[0]:
            self._arrays[name] = []
        self._array = (name, self._words)
        self._words = []

    def _on_redirect(self, match: re.Match[str]) -> None:
        if self._plain:
            self._add(match[0])
            return
        self._end_word()
        self._skip_word = True

    def _on_end(self, match: re.Match[str]) -> None:
        if self._plain and match[0] != "\n":
            self._add(match[0])
        elif self._array is None and not self._plain:
            self._end_command()
            self._maybe = match[0] == "||" or (match[0] == "&&" and self._is_test())
        else:
            self._end_word()
            self._end_array(match[0])

    def _is_test(self) -> bool:
        """Whether the last command asks something. Of any other, what follows on && holds if vLLM is reached."""
        return bool(self.commands) and self.commands[-1].words[:1] in (["["], ["[["], ["test"])

    def _end_array(self, sign: str) -> None:
        if self._array is not None and sign == ")":
            name, words = self._array
            self._arrays.setdefault(name, []).extend(self._words)
            self._words, self._array = words, None

    def _on_space(self, _: re.Match[str]) -> None:
        self._end_word()

    def _on_text(self, match: re.Match[str]) -> None:
        self._add(match[0])

    def _on_other(self, match: re.Match[str]) -> None:
        if match[0] in "'\"":
            where = self._word or (self._words[-1] if self._words else "")
            what = f" after {where.partition('=')[0]!r}" if where.startswith("-") else ""
            raise ConvertError([Problem("", f"a quote ({match[0]}) is opened{what} and never closed; close it")])
        self._add(match[0])


def _command(text: str) -> str:
    return f"$({text[1:-1]})" if text.startswith("`") else text


def words_of(text: str, variables: Variables) -> list[str]:
    """The words of a text that is one command or a part of one: white space and quotes count, operators do not."""
    return [word for command in Splitter(variables, plain=True).split(text) for word in _all_words(command)]


def _all_words(command: Command) -> list[str]:
    return [*(f"{name}={value}" for name, value in command.assigned.items()), *command.words]
