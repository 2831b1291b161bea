"""Shell text falls into the words that a real shell makes of it."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsd_runtime.convert import ConvertError
from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.shell import Splitter, words_of
from kubectl_dsd.convert.variables import Variables, shown, unknowns

PIECES = [
    "a", "--x", "-sc={", "}", " ", "  ", "\t", "\\\n", "\\ ", "\\\\", '\\"', "'a b'", "'\\'", '"a b"',
    '"\\"q\\""', '"\\$V"', '"$V"', "$V,",
    "${V}", "${W:-d e}", '"${W:-d e}"', "${V-x}", "${E:-y}", "${E-z}", '""', "''", "$'t\\n'",
    '"a\\\nb"', "=", ":", ",", "{", "é", "[x]",
]  # fmt: skip
PRELUDE = "V='v w'; E=; unset W\n"


def ours(text: str) -> list[str] | None:
    variables = Variables(Report())
    try:
        commands = Splitter(variables).split(f"{PRELUDE}printf {text}")
    except ConvertError:
        return None
    printed = [command for command in commands if command.words[:1] == ["printf"]]
    return printed[0].words[1:]


def bash(texts: list[str]) -> list[list[str]]:
    """What bash makes of each text, in one process; without brace expansion, which other shells do not have."""
    script = PRELUDE + "".join(f"f() {{ printf '%s\\0' \"$@\"; printf '\\1\\0'; }}\nf {text}\n" for text in texts)
    done = subprocess.run(["bash", "-f", "+B", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    parts = done.stdout.split("\0")
    found: list[list[str]] = [[]]
    for part in parts[:-1]:
        if part == "\1":
            found.append([])
        else:
            found[-1].append(part)
    return found[:-1]


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), min_size=20, max_size=20))
def test_words_are_those_of_bash(texts: list[str]) -> None:
    for text, expected in zip(texts, bash(texts), strict=True):
        # `printf '%s\0'` without words prints one empty one.
        assert (ours(text) or [""]) == expected, text


@pytest.mark.parametrize("text", ["'a", 'x "b', '--sc \'{"a": 1}'])
def test_a_quote_without_an_end_is_told_without_the_text(text: str) -> None:
    with pytest.raises(ConvertError, match="never closed"):
        Splitter(Variables(Report())).split(text)


def test_commands_and_redirections() -> None:
    commands = Splitter(Variables(Report())).split("A=1 one x >out 2>&1 && two | three &\n(four; five) # six")
    assert [c.words for c in commands] == [["one", "x"], ["two"], ["three"], ["four"], ["five"]]
    assert commands[0].assigned == {"A": "1"}


def test_comments() -> None:
    commands = Splitter(Variables(Report())).split("one a#b #c \"d\\\n'two' # e '\n")
    assert [c.words for c in commands] == [["one", "a#b"], ["two"]]


def test_exported_variables() -> None:
    splitter = Splitter(Variables(Report()))
    splitter.split("export A=1\nB=2\nexport B C=3\nD=4\n")
    assert splitter.exported == {"A": "1", "B": "2", "C": "3"}


def test_what_a_shell_would_run_is_marked() -> None:
    (word,) = words_of('"a$(b c)d"', Variables(Report()))
    assert (unknowns(word), shown(word)) == (["$(b c)"], "a$(b c)d")


def test_plain_words_know_no_operators() -> None:
    assert words_of("a; b\n'c d' > e", Variables(Report())) == ["a;", "b", "c d", ">", "e"]
