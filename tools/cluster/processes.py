"""Start background processes, remember them by pid AND start time, and stop exactly those.

A pid alone may belong to somebody else by the time it is used; the kernel's start time tells.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.cluster.waiting import poll

_START_TIME_FIELD = 22 - 3  # proc(5) counts from 1; the two fields up to the command's closing parenthesis are cut off


@dataclass(frozen=True)
class Identity:
    """A process that cannot be mistaken for a later one with the same pid (start time in clock ticks since boot)."""

    pid: int
    start_time: int
    boot: str


def boot_id() -> str:
    """The kernel's identifier of this boot: start times compare only within one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def parse_stat(stat: str) -> tuple[str, int]:
    """State letter and start time (clock ticks) from the text of ``/proc/PID/stat``."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return fields[0], int(fields[_START_TIME_FIELD])


def identify(pid: int) -> Identity | None:
    """The identity of a running process; None if there is none, or only its zombie."""
    try:
        state, start_time = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else Identity(pid, start_time, boot_id())


def is_alive(identity: Identity) -> bool:
    """Whether this very process still runs."""
    return identify(identity.pid) == identity


def command_of(identity: Identity) -> list[str]:
    """The words that a running process was started with."""
    return Path(f"/proc/{identity.pid}/cmdline").read_text().removesuffix("\0").split("\0")


def send(identity: Identity, number: signal.Signals) -> None:
    """Send a signal, unless the process is gone."""
    if is_alive(identity):
        with contextlib.suppress(ProcessLookupError):
            os.kill(identity.pid, number)


def stop(identity: Identity, grace: float) -> None:
    """Terminate a process, and kill it once ``grace`` seconds have passed."""
    send(identity, signal.SIGTERM)
    if not poll(lambda: not is_alive(identity), grace, 0.02):
        send(identity, signal.SIGKILL)
        poll(lambda: not is_alive(identity), 5, 0.02)


@dataclass(frozen=True)
class Daemon:
    """One component in the background: a record of its process, and a log."""

    name: str
    record: Path
    log: Path

    def identity(self) -> Identity | None:
        """What the record says; None without one, or with one that a crash cut short."""
        try:
            return Identity(**json.loads(self.record.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def running(self) -> bool:
        """Whether the recorded process runs."""
        identity = self.identity()
        return identity is not None and is_alive(identity)

    def start(self, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        """Start the component in a session of its own, with its output appended to the log.

        ``env`` is added to this process's environment.
        """
        words = [str(word) for word in command]
        with self.log.open("ab") as log:
            log.write(f"--- {time.strftime('%Y-%m-%dT%H:%M:%S%z')} {' '.join(words)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                words,
                cwd="/",
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._remember(process)

    def _remember(self, process: "subprocess.Popen[bytes]") -> None:
        _children.append(process)
        identity = identify(process.pid)
        if identity is not None:
            temporary = self.record.with_suffix(".new")
            temporary.write_text(json.dumps(identity.__dict__))
            temporary.rename(self.record)

    def stop(self, grace: float = 10) -> None:
        """Stop the recorded process, if it is still that one, and forget it."""
        identity = self.identity()
        if identity is not None:
            stop(identity, grace)
        reap()
        self.record.unlink(missing_ok=True)

    def last_lines(self, lines: int = 20) -> str:
        """The end of the log."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(no log)"


_children: "list[subprocess.Popen[bytes]]" = []


def reap() -> None:
    """Collect ended children of this process (a long test run would pile up zombies)."""
    _children[:] = [child for child in _children if child.poll() is None]
