"""`dsd schedule show`: what the server uses now."""

from pathlib import Path
from typing import Any

import click

from dsd_runtime.cli import describe, output
from dsd_runtime.cli.errors import EXIT_CODES
from dsd_runtime.cli.options import Output, connection_options, output_option
from dsd_runtime.cli.server import Server

EPILOG = f"""\
\b
Examples:
  dsd schedule show
  dsd schedule show --url https://llm.example.com/llm --ca-file ca.pem
  dsd schedule show -o yaml
  watch -n 1 dsd schedule show

{EXIT_CODES}"""


@click.command(epilog=EPILOG)
@connection_options
@output_option
def show(
    url: str, unix_socket: Path | None, ca_file: Path | None, insecure: bool, timeout: float, output: Output
) -> None:
    """Show the schedule in use, which K runs now, and what the engine allows."""
    status = Server(url, ca_file, insecure, unix_socket, timeout).status()
    print_status(status, url, output)


def print_status(status: dict[str, Any], url: str, form: Output) -> None:
    """Print a status, as the server gave it or as tables."""
    if form != "table":
        output.print_data(status, form)
    elif status["mode"] == "off" or "schedule" not in status:
        reason = status.get("lastError", {}).get("message", "the server does not say why")
        versions = status["versions"]
        output.print_tables(
            f"{url}: the schedule cannot be changed while this server runs: {reason}\n"
            f"vLLM {versions['vllm']}, dsd-runtime {versions['runtime']}"
        )
    else:
        output.print_tables(*_parts(status, url))


def _parts(status: dict[str, Any], url: str) -> list[Any]:
    schedule = status["schedule"]
    source = describe.SOURCES.get(schedule["source"], schedule["source"])
    lines = [
        *describe.envelope_lines(status),
        f"smoothing: {describe.smoothing_text(describe.smoothing_of(schedule))}",
    ]
    lines += describe.problem_lines(status)
    rows = describe.schedule_rows(describe.ranges_of(schedule), describe.in_use(status))
    return [
        f"{url}: schedule {schedule['hash']} from {source}, {describe.revision_text(schedule)}",
        output.table(("BATCH SIZE", "K", ""), rows),
        output.table(("ENGINE", "K NOW", "STEPS", "SCHEDULE"), describe.engine_rows(status)),
        "\n".join(lines),
    ]
