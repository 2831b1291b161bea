"""The operator with a wall clock that a test moves: MOVED_CLOCK names a file with the seconds by which it is wrong.

No process can have a wall clock of its own (the kernel's time namespaces know only the others), and the machine's
belongs to everybody. So the one place where the operator reads it, and what libraries ask, get another one; monotonic
clocks are what they were, as on a machine whose clock is set.
"""

import os
import sys
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final

import dsd_operator.app
from dsd_operator.__main__ import main

_FILE: Final = Path(os.environ["MOVED_CLOCK"])
_right: Final = time.time


def _wrong_by() -> float:
    return float(_FILE.read_text())


class _Moved(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(seconds=_wrong_by())


if __name__ == "__main__":
    time.time = lambda: _right() + _wrong_by()
    vars(dsd_operator.app)["datetime"] = _Moved
    sys.exit(main([]))
