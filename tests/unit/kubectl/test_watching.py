"""An API server that is away for a while ends no watch, in whichever form; what will not pass does."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from kubectl_dsd.errors import ApiFailure
from kubectl_dsd.output import Output
from kubectl_dsd.status import command as status
from kubectl_dsd.top import command as top
from kubectl_dsd.top.samples import Look

AWAY = ApiFailure(0, "the API server does not answer in time")
BUSY = ApiFailure(503, "the API server has no time")
FORBIDDEN = ApiFailure(403, "you may not list pods")


class Looks(top.Looks):
    """These looks, one after the other; a failure is raised."""

    def __init__(self, *found: Look | ApiFailure) -> None:
        self._found: Iterator[Look | ApiFailure] = iter(found)

    def next(self) -> Look:
        """The next; the test ends with the last."""
        found = next(self._found, None) or KeyboardInterrupt()
        if isinstance(found, BaseException):
            raise found
        return found


def terminal(monkeypatch: pytest.MonkeyPatch, module: Any) -> Console:
    """What the module prints on, a terminal that remembers."""
    made = Console(force_terminal=True, width=200, record=True, markup=False)
    monkeypatch.setattr(module, "console", lambda: made)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    return made


@pytest.mark.parametrize("output", ["json", "yaml", "table"])
def test_top_goes_on_and_tells_it_on_stderr(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    looks = Looks(Look(1.0, ()), AWAY, BUSY, Look(2.0, ()))

    with pytest.raises(KeyboardInterrupt):
        show(looks, output)

    said = capsys.readouterr()
    assert said.err.splitlines() == [f"{failure.message}; trying again" for failure in (AWAY, BUSY)]
    assert AWAY.message not in said.out
    if output == "json":
        assert [json.loads(line)["time"] for line in said.out.splitlines()] == [
            "1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z",
        ]  # fmt: skip


@pytest.mark.parametrize("output", ["json", "yaml", "table"])
def test_top_ends_where_the_next_look_would_end_alike(output: Output) -> None:
    with pytest.raises(ApiFailure, match="you may not"):
        show(Looks(FORBIDDEN, Look(1.0, ())), output)


def show(looks: Looks, output: Output) -> None:
    """As the command does."""
    if output == "table":
        top.watch(looks, everywhere=False)
    else:
        top.stream(looks, output)


def test_top_on_a_terminal_tells_it_below_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = terminal(monkeypatch, top)

    with pytest.raises(KeyboardInterrupt):
        top.watch(Looks(Look(1.0, ()), AWAY), everywhere=False)

    assert "does not answer in time; the numbers are those of before" in made.export_text()
    assert capsys.readouterr().err == ""


def looks(*found: Any) -> Callable[[], tuple[Any, str]]:
    """What `status` sees, one after the other."""
    each = iter(found)

    def look() -> tuple[Any, str]:
        seen = next(each, None) or KeyboardInterrupt()
        if isinstance(seen, BaseException):
            raise seen
        return seen, str(seen)

    return look


def test_status_on_a_terminal_tells_it_below_what_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line on stderr would go through what rich moves about."""
    made = terminal(monkeypatch, status)

    with pytest.raises(KeyboardInterrupt):
        status._watch(looks("all is well", AWAY, BUSY), 0.001, "table")

    shown = made.export_text()
    assert "does not answer in time; what is shown is that of before" in shown
    assert shown.count("all is well") >= 3, "it stays in sight"
    assert capsys.readouterr().err == ""


def test_status_for_programs_tells_it_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        status._watch(looks("a", AWAY, "b"), 0.001, "json")

    said = capsys.readouterr()
    assert (said.out.split(), said.err) == (['"a"', '"b"'], f"{AWAY.message}; trying again\n")


def test_status_ends_where_the_next_look_would_end_alike() -> None:
    with pytest.raises(ApiFailure, match="you may not"):
        status._watch(looks("a", FORBIDDEN), 0.001, "json")
