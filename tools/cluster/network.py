"""Addresses of the full node, and the device that carries them.

Pods hang on point-to-point links (CNI's ``ptp``), not on a bridge: all their traffic then passes the machine's own
packet filter, so that Services work without the br_netfilter module.
"""

import json

from tools.cluster import shell

NODE_ADDRESS = "10.211.0.1"
POD_RANGE = "10.211.64.0/22"
SERVICE_RANGE = "10.211.128.0/18"
SERVICE_ADDRESS = "10.211.128.1"
DEVICE = "dsd-node"


def ensure() -> None:
    """Make the device with the node's address. A bridge without ports, as some kernels have no `dummy` devices."""
    if not shell.succeeds(["ip", "link", "show", DEVICE]):
        shell.run(["ip", "link", "add", DEVICE, "type", "bridge"])
    shell.run(["ip", "address", "replace", f"{NODE_ADDRESS}/32", "dev", DEVICE])
    shell.run(["ip", "link", "set", DEVICE, "up"])


def remove() -> None:
    """Remove the device, and the links of pods that a crash left."""
    for route in json.loads(shell.run(["ip", "-json", "route", "show", "root", POD_RANGE]) or "[]"):
        shell.succeeds(["ip", "link", "delete", route["dev"]])
    shell.succeeds(["ip", "link", "delete", DEVICE])


def cni_configuration(data_directory: str) -> str:
    """The CNI configuration: addresses from host-local (in ``data_directory``), host ports, and a way out."""
    return json.dumps(
        {
            "cniVersion": "0.4.0",
            "name": "dsd",
            "plugins": [
                {
                    "type": "ptp",
                    "ipMasq": True,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": data_directory,
                        "ranges": [[{"subnet": POD_RANGE}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                # Where other software drops forwarded packets by default, pods' are let through.
                {"type": "firewall", "backend": "iptables"},
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        },
        indent=1,
    )
