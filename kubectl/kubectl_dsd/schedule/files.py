"""The schedule that somebody wants: from ranges on the command line, a schedule file, or a DSDDeployment's manifest."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsd_runtime import config_file
from dsd_runtime.cli import wanted as shared
from dsd_runtime.cli.errors import InputError
from dsd_runtime.cli.wanted import Wanted
from dsd_runtime.schedule import Smoothing
from kubectl_dsd.cluster import Json
from kubectl_dsd.errors import Failure
from kubectl_dsd.kinds import DEPLOYMENT
from kubectl_dsd.profile.results import BEST_SCHEDULE
from kubectl_dsd.wanted import Schedule, schedule_of


def asked(text: str | None, file: str | None, smoothing: str | None, now: Schedule) -> Schedule:
    """What to set in full; what nobody mentions stays as it is `now`. Raises InputError."""
    if text is not None and file is not None:
        raise InputError("give the schedule either as an argument or with -f, not both")
    if text is None and file is None and smoothing is None:
        raise InputError("give a schedule, such as 1-16:3,17-:0, or a file with -f")
    found = _given(text, file)
    schedule = over(now, found) if found is not None else now
    if smoothing is not None:
        return Schedule(schedule.ranges, _in_force(shared.smoothing(smoothing)))
    return schedule


def over(now: Schedule, found: Wanted) -> Schedule:
    """What a file asks for, with the smoothing that is there `now` where the file does not speak of it."""
    return Schedule(found.ranges, _in_force(found.smoothing) if found.says_smoothing else now.smoothing)


def _given(text: str | None, file: str | None) -> Wanted | None:
    if file is not None:
        return read(file)
    return shared.from_short(text) if text is not None else None


def read(name: str) -> Wanted:
    """A schedule file, or the schedule in a manifest; `-` is stdin. Raises InputError."""
    if name == shared.STDIN:
        content = sys.stdin.buffer.read()
    else:
        try:
            content = config_file.read_bytes(Path(name))
        except config_file.ConfigFileError as error:
            raise InputError(f"{name}: {error}") from error
    return _of_manifest(content, name) or shared.from_content(content, name)


def _of_manifest(content: bytes, name: str) -> Wanted | None:
    """The schedule of a DSDDeployment, or the best one of a profile; None where the content is something else."""
    try:
        data: Any = config_file.load_yaml(content)
    except config_file.ConfigFileError:
        return None
    if isinstance(data, Mapping) and BEST_SCHEDULE in data:
        return Wanted(schedule_of({"spec": {"schedule": data[BEST_SCHEDULE]}}).ranges)
    if not isinstance(data, Mapping) or data.get("kind") != DEPLOYMENT:
        return None
    manifest: Json = dict(data)
    try:
        found = schedule_of(manifest)
    except Failure as failure:
        raise InputError(f"{name}: {failure.message}") from failure
    if not found.ranges:
        raise InputError(f"{name}: the manifest has no spec.schedule")
    return Wanted(found.ranges, found.smoothing, says_smoothing=True)


def _in_force(smoothing: Smoothing | None) -> Smoothing | None:
    return None if smoothing is None or smoothing.off else smoothing
