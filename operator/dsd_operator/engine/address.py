"""The one function that makes URLs of pods."""

from ipaddress import IPv6Address, ip_address

PORT = 8000
"""Port of the engine container, see render/."""


def pod_url(ip: str, path: str, port: int = PORT) -> str:
    """`http://ip:port/path`, IPv6 in brackets. ValueError if `ip` is not an address."""
    address = ip_address(ip)
    host = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    return f"http://{host}:{port}{path}"
