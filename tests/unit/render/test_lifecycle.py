"""The preStop hook, run by a shell in which time costs nothing: how long it waits, and for what."""

import os
import subprocess
from pathlib import Path

import pytest

from dsd_operator.render.environment import LEAVING
from dsd_operator.render.lifecycle import PAUSE_SECONDS, lifecycle
from tests.unit.resources import resource


def waits(folder: Path, drain: int, busy: int) -> list[int]:
    """The seconds that the hook sleeps, one after the other; connections are open for `busy` of them."""
    command = lifecycle(resource({"rollout.drainTimeoutSeconds": drain}).spec)["preStop"]["exec"]["command"]
    notice, slept, tools = folder / "leaving", folder / "slept", folder / "tools"
    tools.mkdir()
    fake = tools / "sleep"
    # What the runtime does meanwhile: it looks for the notice, and keeps the file as long as connections are open.
    fake.write_text(
        f"#!/bin/sh\necho $1 >> {slept}\n[ -e {notice} ] || echo 'no notice' >> {slept}\n"
        f'[ "$(awk "{{ s += \\$1 }} END {{ print s }}" {slept})" -lt {busy} ] || rm -f {notice}.7\n'
    )
    fake.chmod(0o755)
    (folder / "leaving.7").touch()
    path = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run([word.replace(LEAVING, str(notice)) for word in command], env=path, check=True, timeout=60)
    assert notice.exists(), "the notice stays: responses after it carry it, too"
    return [int(line) for line in slept.read_text().splitlines()]


@pytest.mark.parametrize(
    ("drain", "busy", "expected"),
    [
        (30, 0, [PAUSE_SECONDS]),
        (30, PAUSE_SECONDS, [PAUSE_SECONDS]),
        (30, PAUSE_SECONDS + 3, [PAUSE_SECONDS, 1, 1, 1]),
        (4, 1000, [PAUSE_SECONDS, 1, 1, 1, 1]),
        (0, 1000, [PAUSE_SECONDS]),
    ],
    ids=["idle", "ends-in-the-pause", "ends-later", "never-ends", "no-time"],
)
def test_it_waits_for_connections_as_long_as_they_may_take(
    tmp_path: Path, drain: int, busy: int, expected: list[int]
) -> None:
    assert waits(tmp_path, drain, busy) == expected
