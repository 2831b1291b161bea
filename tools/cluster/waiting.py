"""Bounded waiting: every loop of this package that waits goes through here."""

import time
from collections.abc import Callable

from tools.cluster.errors import ClusterError


def poll(condition: Callable[[], bool], seconds: float, interval: float = 0.1) -> bool:
    """Call ``condition`` until it holds; False once ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(interval)
    return True


def require(condition: Callable[[], bool], seconds: float, what: str, interval: float = 0.1) -> None:
    """Like :func:`poll`, but raise ClusterError naming ``what`` was waited for."""
    if not poll(condition, seconds, interval):
        raise ClusterError(f"{what}: not so after {seconds:.0f} s")
