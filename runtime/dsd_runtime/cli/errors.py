"""How the command fails: a sentence for the person, an exit code for the script. 1 is left to what nobody foresaw."""

from typing import Final

import click


class InputError(click.ClickException):
    """The command line or the input is wrong; nothing was sent."""

    exit_code = 2


class UnreachableError(click.ClickException):
    """The server cannot be reached, or does not answer."""

    exit_code = 3


class NoPluginError(click.ClickException):
    """The server is no vLLM with this plugin, or its plugin is off."""

    exit_code = 4


class RefusedError(click.ClickException):
    """The server refuses."""

    exit_code = 5


EXIT_CODES: Final = """\
\b
Exit codes:
  0  done
  2  the command line or the input is wrong; nothing was sent
  3  the server cannot be reached, or does not answer
  4  the server is no vLLM with this plugin, or its plugin is off
  5  the server refuses: token, revision, or a schedule that it cannot run
"""
"""For `--help`."""
