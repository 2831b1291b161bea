"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import click

Output = Literal["table", "json", "yaml"]
F = TypeVar("F", bound=Callable[..., Any])

OUTPUTS: Final[tuple[Output, ...]] = ("table", "json", "yaml")
EXISTING_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def output_option(function: F) -> F:
    """`-o table|json|yaml`."""
    decorate = click.option(
        "-o",
        "--output",
        type=click.Choice(OUTPUTS),
        default="table",
        show_default=True,
        help="How to print the result.",
    )
    return decorate(function)


def connection_options(function: F) -> F:
    """How to reach the server."""
    options = (
        click.option(
            "--url",
            envvar="DSD_URL",
            default="http://localhost:8000",
            show_default=True,
            help="Where the server listens, its --root-path included. [env: DSD_URL]",
        ),
        click.option(
            "--unix-socket", type=click.Path(path_type=Path), help="Connect to the socket of `--uds` instead of a port."
        ),
        click.option("--ca-file", type=EXISTING_FILE, help="Certificate authorities to trust, as PEM, for https."),
        click.option("--insecure", is_flag=True, help="Do not check the certificate of an https server."),
        click.option(
            "--timeout", type=click.FloatRange(0, min_open=True), default=15, show_default=True, help="Seconds to wait."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function
