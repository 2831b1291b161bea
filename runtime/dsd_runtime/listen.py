"""Where the server will listen: the default address, and whether it is free, before minutes of loading.

vLLM binds one socket (`create_server_socket` and `create_server_unix_socket` in
`vllm/entrypoints/launchers/launcher.py`). Between this look and that moment another process may come first; vLLM then
says so itself.
"""

import errno
import ipaddress
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dsd_runtime.usage import UsageError
from dsd_runtime.vllm_arguments import last_value, with_config_file

DEFAULT_PORT: Final = 8000
"""vLLM's."""

_DOCUMENTATION_NETWORK: Final = ("192.0.2.1", 9)
"""An address that belongs to nobody (RFC 5737); only looked up in the routing table."""


def default_host() -> str:
    """`::` where that reaches IPv6 and IPv4 alike, else the family that this machine has a way out with.

    vLLM binds an IPv6 socket as the kernel makes it. With net.ipv6.bindv6only=1 that shuts IPv4 out, and with IPv6
    disabled it cannot be bound at all.
    """
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            only_ipv6 = bool(probe.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
            probe.bind(("::", 0))
    except OSError:
        return "0.0.0.0"
    return "0.0.0.0" if only_ipv6 and has_ipv4() else "::"


def has_ipv4() -> bool:
    """Whether there is a route for IPv4; sends nothing."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_DOCUMENTATION_NETWORK)
    except OSError:
        return False
    return True


def check_free(arguments: Sequence[str]) -> None:
    """Raise UsageError where vLLM could not bind what `arguments` say."""
    words = with_config_file(arguments)
    if "--headless" in {word.replace("_", "-") for word in words}:
        return  # no API server here
    if uds := last_value(words, "--uds"):
        _check_socket(Path(uds))
        return
    port = last_value(words, "--port")
    if port is None or port.isdecimal():
        _check_port(last_value(words, "--host") or "", int(port) if port is not None else DEFAULT_PORT)


def _check_port(host: str, port: int) -> None:
    where = f"port {port}" + (f" of {host}" if host not in ("", "0.0.0.0", "::") else "")
    try:
        number = _bind(host, port, reuse=False)
        if number == errno.EADDRINUSE and _lingering(port):
            number = _bind(host, port, reuse=True)
    except OverflowError as error:
        raise UsageError(f"--port {port}: there is no such port") from error
    except socket.gaierror as error:
        raise UsageError(f"--host {host}: there is no such host ({error.strerror})") from error
    if number:
        raise UsageError(_port_problem(number, where, host))


def _bind(host: str, port: int, reuse: bool) -> int:
    """The error number of a bind; 0 where it succeeds.

    vLLM binds with SO_REUSEADDR. With it a bind succeeds beside a server that has bound its port and still loads its
    model, and only one of the two can listen in the end; without it, connections of an earlier server that linger for
    a minute are an obstacle.
    """
    family = socket.AF_INET6 if _is_ipv6(host) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        try:
            probe.bind((host, port))
        except socket.gaierror:
            raise
        except OSError as error:
            return error.errno or errno.EINVAL
    return 0


def _lingering(port: int) -> bool:
    """Whether connections use `port`; a socket that is only bound is none. True where the kernel does not tell."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            return True
        if any(int(line.split()[1].rpartition(":")[2], 16) == port for line in lines):
            return True
    return False


def _port_problem(number: int, where: str, host: str) -> str:
    match number:
        case errno.EADDRINUSE:
            return f"{where} is in use by another process: stop that one, or choose another port with --port"
        case errno.EADDRNOTAVAIL:
            return f"--host {host} is no address of this machine"
        case errno.EACCES:
            return f"{where} is not allowed for this user: choose one above 1023 with --port"
    return f"cannot listen on {where}: {os.strerror(number)}"


def _check_socket(path: Path) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"--uds {path}: there is no folder {path.parent}")
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError as error:
            raise UsageError(f"--uds {path}: something is left over there that nobody serves; remove it") from error
    raise UsageError(f"--uds {path} is in use by another process: stop that one, or choose another path")


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False
