"""Free ports on the loopback interface."""

import random
import socket

# Below the range that Linux gives to outgoing connections, and apart from Kubernetes' NodePorts.
_FIRST, _LAST = 20000, 29999
_TRIES = 200


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a listener could be opened now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Distinct ports that are free now. Drawn at random, so that clusters starting side by side rarely collide."""
    found: list[int] = []
    for _ in range(_TRIES):
        port = random.randint(_FIRST, _LAST)
        if port not in found and is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports between {_FIRST} and {_LAST} on 127.0.0.1")
