"""`dsd schedule set`: another schedule for a running server."""

import getpass
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from dsd_runtime.cli import describe, output, wanted
from dsd_runtime.cli.errors import EXIT_CODES, InputError, NoPluginError, RefusedError
from dsd_runtime.cli.options import EXISTING_FILE, Output, connection_options, output_option
from dsd_runtime.cli.server import Server
from dsd_runtime.cli.wanted import Wanted
from dsd_runtime.protocol import Revision, SchedulePut
from dsd_runtime.schedule import Problem, schedule_hash, validate

TOKEN_ENV: Final = "DSD_TOKEN"
OWNER_PREFIX: Final = "dsd-cli/"
EPILOG = f"""\
\b
SCHEDULE in short: batch sizes and their K, separated by commas. The last range
may stay open: 1-16:3,17-64:1,65-:0

\b
Examples:
  dsd schedule set 1-16:3,17-:0 --token-file token
  dsd schedule set -f schedule.yaml --dry-run
  echo 1-:2 | dsd schedule set -f - --token-file token
  dsd schedule set --smoothing dwellSteps=20,marginPercent=10 --token-file token

{EXIT_CODES}"""


@dataclass(frozen=True)
class Change:
    """From what the server says to what somebody wants."""

    before: Mapping[str, Any]
    after: Wanted

    def problems(self) -> list[Problem]:
        """Why the server would refuse it, as far as its status tells."""
        envelope = self.before["envelope"]
        allowed = envelope["allowedTokens"]
        return validate(self.after.ranges, envelope["numSpeculativeTokens"]) or [
            Problem(
                f"ranges[{i}].numSpeculativeTokens", f"K={r.num_speculative_tokens} is not possible, only {allowed}"
            )
            for i, r in enumerate(self.after.ranges)
            if r.num_speculative_tokens not in allowed
        ]

    def notes(self) -> list[str]:
        """What the person should know about it."""
        prepared = set(self.before["envelope"]["preparedTokens"])
        unprepared = {r.num_speculative_tokens for r in self.after.ranges} - prepared
        found = []
        if unprepared:
            names = ", ".join(f"K={k}" for k in sorted(unprepared))
            found.append(f"{names}: not prepared at start, so correct but maybe slower (--dsd-prepared-tokens)")
        owner = (self.before["schedule"].get("revision") or {}).get("owner", OWNER_PREFIX)
        if not owner.startswith(OWNER_PREFIX):
            found.append(f"the schedule in use is of {owner}, who may set it again")
        return found

    def next_number(self) -> int:
        """A revision number above all that the server uses, and at least the time in milliseconds."""
        schedules = [self.before["schedule"], *(core["schedule"] for core in self.before["engines"])]
        used = [schedule["revision"]["number"] for schedule in schedules if schedule.get("revision")]
        return int(max([time.time_ns() // 1_000_000, *(number + 1 for number in used)]))


@click.command(name="set", epilog=EPILOG)
@click.argument("schedule", required=False)
@click.option("-f", "--file", "file", help="Schedule file, YAML or JSON; - for stdin.")
@click.option("--smoothing", help="dwellSteps=N,marginPercent=N, or off. Without: as it is, or as the file says.")
@click.option("--token-file", type=EXISTING_FILE, help=f"The token that may write. Without: the variable {TOKEN_ENV}.")
@click.option("--revision", type=click.IntRange(1, 2**53 - 1), help="Its number. Default: newer than all before.")
@click.option("--dry-run", is_flag=True, help="Check it against the running engine, and change nothing.")
@connection_options
@output_option
def set_schedule(
    schedule: str | None,
    file: str | None,
    smoothing: str | None,
    token_file: Path | None,
    revision: int | None,
    dry_run: bool,
    url: str,
    unix_socket: Path | None,
    ca_file: Path | None,
    insecure: bool,
    timeout: float,
    output: Output,
) -> None:
    """Change the schedule of a running server, at once and without a restart.

    Needs a token, unless with --dry-run: the content of the file that the server's schedule file names under
    auth.tokenFile.
    """
    asked = _asked(schedule, file, smoothing)
    token = b"" if dry_run else _token(token_file)
    server = Server(url, ca_file, insecure, unix_socket, timeout)
    before = _changeable(server.status())
    change = Change(before, _completed(asked, smoothing, before["schedule"]))
    if dry_run:
        _check(change)
        _print(change, None, output)
        return
    number = Revision(owner=_owner(), number=revision or change.next_number())
    body = SchedulePut(revision=number, ranges=change.after.ranges, smoothing=change.after.smoothing)
    server.put(body, token)
    _print(change, _read_back(server, change), output)


def _asked(schedule: str | None, file: str | None, smoothing: str | None) -> Wanted | None:
    """What the command line asks for; None: the ranges stay, only the smoothing changes."""
    if schedule is not None and file is not None:
        raise InputError("give the schedule either as an argument or with -f, not both")
    if schedule is None and file is None and smoothing is None:
        raise InputError("give a schedule, such as 1-16:3,17-:0, or a file with -f")
    if file is not None:
        return wanted.from_file(file)
    return wanted.from_short(schedule) if schedule is not None else None


def _completed(asked: Wanted | None, smoothing: str | None, now: Mapping[str, Any]) -> Wanted:
    """What to set in full: a PUT says everything, so what nobody mentions must come from what is in use."""
    ranges = asked.ranges if asked is not None else describe.ranges_of(now)
    if smoothing is not None:
        return Wanted(ranges, wanted.smoothing(smoothing))
    if asked is not None and asked.says_smoothing:
        return asked
    return Wanted(ranges, describe.smoothing_of(now))


def _token(file: Path | None) -> bytes:
    try:
        content = file.read_bytes() if file is not None else os.fsencode(os.environ.get(TOKEN_ENV, ""))
    except OSError as error:
        raise InputError(f"--token-file {file}: {error.strerror}") from error
    token = content.strip()
    if not token:
        where = f"{file} is empty" if file is not None else f"give it with --token-file FILE, or in {TOKEN_ENV}"
        raise InputError(f"a token is needed to change a schedule: {where}")
    if len(token.split()) > 1 or any(byte < 32 for byte in token):
        raise InputError("the token must be one word, in one line")
    return token


def _changeable(status: dict[str, Any]) -> dict[str, Any]:
    if status["mode"] == "off" or "schedule" not in status:
        reason = status.get("lastError", {}).get("message", "the server does not say why")
        raise NoPluginError(f"this server's schedule changes only with a restart: {reason}")
    return status


def _owner() -> str:
    try:
        return OWNER_PREFIX + getpass.getuser()
    except (OSError, KeyError, ImportError):
        return OWNER_PREFIX + "unknown"  # a user id without a name, as in many containers


def _check(change: Change) -> None:
    if problems := change.problems():
        text = "; ".join(f"{p.field}: {p.message}" for p in problems)
        raise RefusedError(f"the server would refuse this: {text}")


def _read_back(server: Server, change: Change) -> dict[str, Any]:
    """The status as it is now; raises RefusedError when something else is in use by then."""
    status = server.status()
    expected = schedule_hash(change.after.ranges, change.after.smoothing)
    wrong = [core["engine"] for core in status["engines"] if core["schedule"]["hash"] != expected]
    if wrong or status["schedule"]["hash"] != expected:
        raise RefusedError(
            f"it was accepted, but the server uses {describe.revision_text(status['schedule'])} by now: somebody else "
            "changes it too",
        )
    return status


def _print(change: Change, after: dict[str, Any] | None, form: Output) -> None:
    for text in change.notes():
        output.note(text)
    if form != "table":
        wanted_now = SchedulePut(
            revision=Revision(owner="-", number=1), ranges=change.after.ranges, smoothing=change.after.smoothing
        ).dump()
        del wanted_now["revision"]
        result = {"applied": after is not None, "before": change.before["schedule"]}
        output.print_data(result | {"after": after["schedule"] if after is not None else wanted_now}, form)
        return
    rows = list(describe.change_rows(describe.ranges_of(change.before["schedule"]), change.after.ranges))
    changes = output.table(("BATCH SIZE", "K BEFORE", "K AFTER"), rows, (old != new for _, old, new in rows))
    output.print_tables(changes, "\n".join(_closing(change, after)))


def _closing(change: Change, after: Mapping[str, Any] | None) -> list[str]:
    old, new = describe.smoothing_of(change.before["schedule"]), change.after.smoothing
    texts = describe.smoothing_text(old), describe.smoothing_text(new)
    lines = [f"smoothing: {texts[0]} -> {texts[1]}" if texts[0] != texts[1] else f"smoothing: {texts[1]}"]
    if after is None:
        return [*lines, "dry run: possible with this engine; nothing was changed"]
    schedule, count = after["schedule"], len(after["engines"])
    lines.append(
        f"in use by {count} engine core{'s' if count > 1 else ''}, read back: schedule {schedule['hash']}, "
        f"{describe.revision_text(schedule)}"
    )
    return [*lines, "after a restart the schedule file counts again; change it too to keep this"]
