"""Shell completion: the script for `kubectl-dsd` itself, and what kubectl asks when one types `kubectl dsd <TAB>`.

kubectl calls an executable `kubectl_complete-dsd` with the words so far; it must print candidates, one a line, and end
with a directive of cobra's, the library that kubectl's command line is made with.
"""

import sys
from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

PROGRAM: Final = "kubectl-dsd"
COMPLETE_VARIABLE: Final = "_KUBECTL_DSD_COMPLETE"
_NO_FILES: Final = ":4"
"""ShellCompDirectiveNoFileComp."""

_FILES: Final = ":0"
"""ShellCompDirectiveDefault: the shell completes file names."""


@click.command(
    epilog="""\
\b
Examples:
  source <(kubectl dsd completion bash)
  kubectl dsd completion fish > ~/.config/fish/completions/kubectl-dsd.fish

`kubectl dsd <TAB>` needs no script of ours: kubectl's own completion asks kubectl_complete-dsd, which was installed
beside kubectl-dsd.
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes kubectl-dsd in a shell."""
    made = get_completion_class(shell)
    if made is None:
        sys.exit(1)
    root = click.get_current_context().find_root().command
    click.echo(made(root, {}, PROGRAM, COMPLETE_VARIABLE).source())


def kubectl_complete(arguments: Sequence[str] | None = None) -> None:
    """Entry point `kubectl_complete-dsd`: candidates for the last of the words, and a directive."""
    from kubectl_dsd.main import cli

    words = list(sys.argv[1:] if arguments is None else arguments) or [""]
    asked = ShellComplete(cli, {}, PROGRAM, COMPLETE_VARIABLE)
    found = asked.get_completions(words[:-1], words[-1])
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(_FILES if any(item.type in ("file", "dir") for item in found) else _NO_FILES)
