"""Changes the schedule of an engine between two of its steps, and holds every answer against what must come."""

import json
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.runtime import fuzz_schedules
from tests.runtime.examples import OWNER

FILE_SECONDS: Final = 60.0
"""The file is looked at about once a second."""


@dataclass
class Counts:
    """What was done: schedules put, those refused as they must be, and those that came by the config file."""

    put: int = 0
    file: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def number_in_use(core: Any) -> int:
    """The number of the revision that the engine started with: that of the config file, which may have none."""
    revision = core.dsd_status()["schedule"].get("revision")
    return int(revision["number"]) if revision else 1


class Swapper:
    """One swap at a time: mostly by the utility behind the PUT route, now and then by the config file, which is used
    at whatever step its watcher finds it."""

    def __init__(self, core: Any, seed: int) -> None:
        """`core` is the EngineCore; DSD_CONFIG names its config file."""
        self._core = core
        self._chance = random.Random(seed + 1)
        self._number = number_in_use(core)
        self._maximum: int = core.vllm_config.speculative_config.num_speculative_tokens
        self._in_force: dict[str, Any] = {}
        self._file_due: float | None = None
        self.counts = Counts()

    @property
    def done(self) -> int:
        """Valid schedules that were brought into force."""
        return self.counts.put + self.counts.file

    def swap(self) -> None:
        """Bring one schedule into force, or try one that must be refused, or see whether the file's is in force."""
        if self._file_due is not None:
            self._look()
        elif self._chance.random() < 0.005 or (self.counts.put >= 10 and not self.counts.file):
            self._write()
        elif self._chance.random() < 0.1:
            self._refused()
        else:
            self._put()

    def _body(self, number: int) -> dict[str, Any]:
        return fuzz_schedules.put(self._chance, OWNER, number, self._maximum)

    def _next(self) -> dict[str, Any]:
        self._number += self._chance.randint(1, 1000)
        return self._body(self._number)

    def _call(self, body: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._core.dsd_put(json.dumps(body), f"change-{self._number}")
        return answer

    def _put(self) -> None:
        body = self._next()
        answer = self._call(body)
        assert answer["result"] == "applied", (body, answer)
        self._in_force = body
        self.counts.put += 1
        self._compare(answer["status"])

    def _refused(self) -> None:
        """Too old, or a K that is too large: both must change nothing."""
        if self._chance.random() < 0.5 and self._in_force:
            body, expected = self._body(self._chance.randint(1, self._number - 1)), "stale"
        else:
            body, expected = self._body(self._number + 1), "invalid"
            self._chance.choice(body["ranges"])["numSpeculativeTokens"] = self._chance.randint(self._maximum + 1, 128)
        answer = self._call(body)
        assert answer["result"] == expected, (body, answer)
        self.counts.refused[expected] += 1
        self._compare(answer["status"])

    def _write(self) -> None:
        path = Path(os.environ["DSD_CONFIG"])
        self._in_force = self._next()
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(self._in_force))
        partial.replace(path)
        self._file_due = time.monotonic() + FILE_SECONDS

    def _look(self) -> None:
        assert self._file_due is not None
        schedule = self._core.dsd_status()["schedule"]
        if schedule.get("revision") == self._in_force["revision"]:
            self._file_due = None
            self.counts.file += 1
            self._compare({"schedule": schedule})
        else:
            assert time.monotonic() < self._file_due, f"the file's schedule is not in force: {schedule}"

    def _compare(self, status: dict[str, Any]) -> None:
        if self._in_force:
            shown = status["schedule"]
            found = {key: shown[key] for key in ("revision", "ranges", "smoothing") if key in shown}
            assert found == self._in_force, shown
