"""Run a command to its end, with its output in the error when it fails."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.cluster.errors import ClusterError

_TAIL_LINES = 25


def tail(text: str, lines: int = _TAIL_LINES) -> str:
    """The last lines of a text."""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = 600,
) -> str:
    """Run a command and return its standard output.

    ``env`` is added to this process's environment; ``timeout`` is in seconds.
    Raises ClusterError with the last lines of the output if it fails or takes longer.
    """
    words = [str(word) for word in command]
    environment = {**os.environ, **(env or {})}
    try:
        result = subprocess.run(
            words, cwd=cwd, env=environment, input=stdin, timeout=timeout, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]} is not installed: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"`{' '.join(words)}` did not end within {timeout:.0f} s") from error
    if result.returncode != 0:
        output = tail(result.stdout + result.stderr)
        raise ClusterError(f"`{' '.join(words)}` failed with status {result.returncode}:\n{output}")
    return result.stdout


def succeeds(command: Sequence[str | Path], *, timeout: float = 60) -> bool:
    """Whether a command ends with status 0."""
    try:
        run(command, timeout=timeout)
    except ClusterError:
        return False
    return True
