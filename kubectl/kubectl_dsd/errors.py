"""How the command fails: one plain line and what to do about it, never a trace.

Exit codes: 1 for a `Failure`, 2 for a command line or an input that is wrong (click's own, and `InputError` of the
runtime's command line, whose parsers are shared).
"""

from typing import IO, Any, Final

import click

_SERVER_ERRORS: Final = 500
_TOO_MANY: Final = 429

EXIT_CODES: Final = """\
\b
Exit codes:
  0  done
  1  it failed; stderr says why and what to do
  2  the command line or the input is wrong; nothing was sent
"""
"""For `--help`."""


class Failure(click.ClickException):
    """`message` says what is wrong, `hint` what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        """Print both to stderr."""
        click.echo(f"Error: {self.message}", file=file, err=file is None)
        if self.hint:
            click.echo(self.hint, file=file, err=file is None)


class ApiFailure(Failure):
    """The API server refused or did not answer. `status` is HTTP's, 0 for no answer; `body` its Status object."""

    def __init__(self, status: int, message: str, hint: str = "", body: dict[str, Any] | None = None) -> None:
        super().__init__(message, hint)
        self.status = status
        self.body = body or {}

    @property
    def may_pass(self) -> bool:
        """Whether it may be over the next time. A change that failed so may have been made, or may be made yet."""
        return self.status in (0, _TOO_MANY) or self.status >= _SERVER_ERRORS
