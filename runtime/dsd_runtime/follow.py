"""A worker of an engine over several nodes that is told to end waits for its leader to end first.

The leader may still answer requests (`draining`), and each of its steps needs every worker. Kubernetes asks for this
before it ends a worker's pod (`dsd-serve --dsd-wait-for-leader`). Whether the leader is there is seen at the port
where its group met: it is open for as long as the leader's own worker process lives, and longer than its API.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from dsd_runtime.protocol import DRAIN_TIMEOUT_ENV
from dsd_runtime.usage import UsageError

LEADER_ENV: Final = "LWS_LEADER_ADDRESS"
"""Set by the controller of LeaderWorkerSets."""

MASTER_PORT: Final = 29501
"""vLLM's default for --master-port (`ParallelConfig.master_port`)."""

MARGIN_SECONDS: Final = 15.0
"""On top of the time that the leader has for running requests: it is told a moment later, and takes one to end."""

_DEFAULT_DRAIN_SECONDS: Final = 30.0
_INTERVAL_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 2.0


def wait_for_leader(environment: Mapping[str, str] = os.environ, port: int = MASTER_PORT) -> None:
    """Return when the leader has ended, or has had the time to; raises UsageError where no leader is named."""
    leader = environment.get(LEADER_ENV)
    if not leader:
        raise UsageError(f"--dsd-wait-for-leader is for workers of a LeaderWorkerSet: {LEADER_ENV} is not set")
    drain = float(environment.get(DRAIN_TIMEOUT_ENV) or _DEFAULT_DRAIN_SECONDS)
    address = _resolved(leader, port)
    if address is not None:
        wait_while(lambda: answers(address, port), drain + MARGIN_SECONDS)


def wait_while(there: Callable[[], bool], seconds: float) -> None:
    """Return when `there` says no, after `seconds` at the latest."""
    deadline = time.monotonic() + seconds
    while there() and time.monotonic() < deadline:
        time.sleep(_INTERVAL_SECONDS)


def answers(address: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection((address, port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _resolved(name: str, port: int) -> str | None:
    """The address behind the name, once: the name may go before the leader does."""
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError:
        return None
    return str(found[0][4][0])
