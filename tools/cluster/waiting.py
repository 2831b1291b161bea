"""Bounded waiting: every loop of this package that waits goes through here."""

import time
from collections.abc import Callable


def poll(condition: Callable[[], bool], seconds: float, interval: float = 0.1) -> bool:
    """Call ``condition`` until it holds; False once ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(interval)
    return True
