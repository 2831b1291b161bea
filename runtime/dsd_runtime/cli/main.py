"""Entry point of the command `dsd`."""

import sys

import click
from click.shell_completion import get_completion_class

from dsd_runtime import __version__
from dsd_runtime.cli.change import set_schedule
from dsd_runtime.cli.conversion import convert
from dsd_runtime.cli.show import show

PROGRAM = "dsd"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name=PROGRAM)
def main() -> None:
    """Speculative decoding in vLLM whose schedule changes while it serves.

    A schedule says how many tokens to draft (K) for each batch size. dsd-serve runs vLLM with one; this command shows,
    changes and converts it.
    """


@main.group()
def schedule() -> None:
    """Show, change and convert schedules."""


schedule.add_command(show)
schedule.add_command(set_schedule)
schedule.add_command(convert)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes this command in a shell.

    \b
    Examples:
      source <(dsd completion bash)
      dsd completion fish > ~/.config/fish/completions/dsd.fish
    """
    made = get_completion_class(shell)
    if made is None:
        sys.exit(1)
    click.echo(made(main, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
