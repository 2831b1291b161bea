"""Debian packages this package needs, and where this machine gets them."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import shell
from tools.cluster.console import step
from tools.cluster.errors import ClusterError

_INSTALL_SECONDS = 1800
# Where Debian keeps programs that an unprivileged user's PATH may lack.
_PROGRAM_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


@dataclass(frozen=True)
class Package:
    """A Debian package, and one file or program that shows that it is there."""

    name: str
    evidence: str

    def present(self) -> bool:
        """Whether the program is on the PATH, or the file exists."""
        if self.evidence.startswith("/"):
            return Path(self.evidence).exists()
        return shutil.which(self.evidence, path=_PROGRAM_PATH) is not None


API_ONLY_PACKAGES = (Package("openssl", "openssl"),)
NODE_PACKAGES = (
    *API_ONLY_PACKAGES,
    Package("containerd", "containerd"),
    Package("runc", "runc"),
    Package("containernetworking-plugins", "/usr/lib/cni/ptp"),
    Package("iproute2", "ip"),
    Package("iptables", "iptables-save"),
    Package("conntrack", "conntrack"),
    Package("socat", "socat"),
    Package("mount", "mount"),
)
IMAGE_PACKAGES = (
    Package("buildah", "buildah"),
    Package("debootstrap", "debootstrap"),
    Package("debian-archive-keyring", "/usr/share/keyrings/debian-archive-keyring.gpg"),
    Package("gpgv", "gpgv"),
    Package("ca-certificates", "/etc/ssl/certs/ca-certificates.crt"),
)


def require_root() -> None:
    """Raise ClusterError unless this process may start a node and build images."""
    if os.geteuid() != 0:
        raise ClusterError("this needs root: run it with sudo -E, or use the API-only mode (up --api-only --state DIR)")


def ensure(packages: Sequence[Package]) -> None:
    """Install what is missing, when root; else raise ClusterError with the command that does."""
    missing = [package.name for package in packages if not package.present()]
    if not missing:
        return
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ClusterError(f"missing packages; install them as root:\n  apt-get update && {' '.join(install)}")
    # Packages of daemons start them where there is a service manager; ours run beside, with sockets of their own.
    with step(f"installing Debian packages: {' '.join(missing)}"):
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        shell.run(["apt-get", "update", "-q"], env=environment, timeout=_INSTALL_SECONDS)
        shell.run(install, env=environment, timeout=_INSTALL_SECONDS)
    still = [package.name for package in packages if not package.present()]
    if still:
        raise ClusterError(f"installed, but without the expected files: {', '.join(still)}")


def parse_mirror(targets: str) -> str | None:
    """The first mirror of Debian itself in the output of ``apt-get indextargets`` (``SITE|ORIGIN|LABEL|COMPONENT``)."""
    for line in targets.splitlines():
        site, _, rest = line.partition("|")
        if rest == "Debian|Debian|main":
            return site
    return None


def mirror() -> str:
    """The Debian mirror this machine's apt uses. Raises ClusterError if it has none."""
    show = ["apt-get", "indextargets", "--format", "$(SITE)|$(ORIGIN)|$(LABEL)|$(COMPONENT)", "Created-By: Packages"]
    found = parse_mirror(shell.run(show))
    if found is None:
        print("reading the package lists", file=sys.stderr)
        shell.run(["apt-get", "update", "-q"], timeout=_INSTALL_SECONDS)
        found = parse_mirror(shell.run(show))
    if found is None:
        raise ClusterError("apt on this machine has no Debian mirror among its sources: base images cannot be made")
    return found
