"""Addresses for stand-ins that the API server's proxy goes to: it refuses 127/8, so these lie on the loopback device.

Taken from 198.18.0.0/15, which is set aside for tests (RFC 2544), one /32 each, and given back.
"""

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address

import pytest

_FIRST = int(IPv4Address("198.18.0.1")) + (os.getpid() % 1000) * 100
_candidates = map(IPv4Address, itertools.count(_FIRST))


@contextmanager
def pod_address() -> Iterator[str]:
    """An address of this machine that is nobody else's, while the block runs."""
    address = _add()
    try:
        yield address
    finally:
        _ip("del", address)


def _add() -> str:
    for candidate in itertools.islice(_candidates, 50):
        done = _ip("add", str(candidate))
        if done.returncode == 0:
            return str(candidate)
        if "File exists" not in done.stderr and "already assigned" not in done.stderr:
            pytest.skip(f"needs the right to add an address to the loopback device: {done.stderr.strip()}")
    raise AssertionError("50 addresses in a row are taken")


def _ip(verb: str, address: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["ip", "address", verb, f"{address}/32", "dev", "lo"], capture_output=True, text=True, check=False
    )
