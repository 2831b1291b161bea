"""Entry point of `kubectl dsd`. A sub-command's module is imported when it is used, so that each starts quickly."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from kubectl_dsd import __version__
from kubectl_dsd.completion import COMPLETE_VARIABLE
from kubectl_dsd.options import target_options
from kubectl_dsd.profile.signals import EXIT, Interrupted

PROGRAM: Final = "kubectl dsd"
_DEBUG: Final = "DSD_DEBUG"
_INTERRUPTED: Final = 130

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "completion": ("kubectl_dsd.completion:completion", "Print the script that completes this command in a shell."),
    "convert": ("kubectl_dsd.convert.command:convert", "Turn a vLLM command line into a DSDDeployment."),
    "explain": ("kubectl_dsd.explain.command:explain", "Say why a deployment is not Ready, and what to do."),
    "profile": ("kubectl_dsd.profile.command:profile", "Measure a running deployment and find its best schedule."),
    "rollout": ("kubectl_dsd.rollout.command:rollout", "See, undo, force and follow the replacement of pods."),
    "schedule": ("kubectl_dsd.schedule.command:schedule", "Show, compare and change schedules."),
    "status": ("kubectl_dsd.status.command:status", "Show conditions, pods, schedules, and what is out of sync."),
    "top": ("kubectl_dsd.top.command:top", "Watch K, concurrency, acceptance and tokens per second."),
}
"""Name -> where the command is, and what `--help` says of it."""


class LazyGroup(click.Group):
    """A group that imports a sub-command's module when the sub-command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, imported or not."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, or None for a name that there is not."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name=PROGRAM)
@target_options
def cli(**_: Any) -> None:
    """See, explain, change and measure DSDDeployments: vLLM with speculative decoding whose schedule changes in place.

    A schedule says how many tokens to draft (K) for each batch size.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit. Whatever goes wrong ends in words; DSD_DEBUG=1 shows the trace of a defect of ours."""
    if not os.environ.get(_DEBUG):
        logging.getLogger().addHandler(logging.NullHandler())  # the HTTP client's remarks are not for the person
    try:
        # Not standalone: click would show a failure of ours and hide what nobody foresaw. It returns what `exit` says.
        ended = cli.main(args=arguments, prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE, standalone_mode=False)
        sys.exit(ended if isinstance(ended, int) else 0)
    except click.ClickException as failure:
        failure.show()
        sys.exit(failure.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(_INTERRUPTED)
    except Interrupted as interrupted:
        sys.exit(EXIT + interrupted.number)
    except BrokenPipeError:
        # The reader has gone (`| head`); Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get(_DEBUG):
            raise
        click.echo(f"Error: this is a defect of {PROGRAM}: {type(error).__name__}: {error}", err=True)
        click.echo(f"Please report it with the output of the same command under {_DEBUG}=1.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
