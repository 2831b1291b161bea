"""Where everything lives: the cache (kept) and the state of one cluster (removed by ``down``)."""

import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = Path(__file__).resolve().parent


def cache_root() -> Path:
    """The project's cache directory: ``$XDG_CACHE_HOME/dsd-operator``, else ``~/.cache/dsd-operator``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dsd-operator"


def binaries_root() -> Path:
    """Built tools, one directory per tool, version and build key."""
    return cache_root() / "bin"


def node_state() -> Path:
    """State of the one full node of this user."""
    return cache_root() / "cluster"


def containerd_root() -> Path:
    """Image content of containerd. It outlives ``down``, so that a second ``up`` pulls nothing."""
    return cache_root() / "containerd"


def buildah_root() -> Path:
    """Storage of buildah, apart from whatever else the machine uses buildah for."""
    return cache_root() / "buildah"


@dataclass(frozen=True)
class Layout:
    """Files of one cluster below its state directory."""

    root: Path

    @property
    def certificates(self) -> Path:
        """Keys and certificates, removed with the cluster."""
        return self.root / "certificates"

    @property
    def configuration(self) -> Path:
        """Configuration files handed to the components."""
        return self.root / "configuration"

    @property
    def logs(self) -> Path:
        """One log file per component; ``down`` keeps them until the next ``up``."""
        return self.root / "logs"

    @property
    def processes(self) -> Path:
        """One JSON file per running component."""
        return self.root / "processes"

    @property
    def data(self) -> Path:
        """Data of the components: etcd, kubelet, containerd's state."""
        return self.root / "data"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def ready(self) -> Path:
        """Written last by ``up``: what it started and with which configuration."""
        return self.root / "ready.json"

    @property
    def owner(self) -> Path:
        """API-only: the process that the cluster was made for."""
        return self.root / "owner.json"

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of one component."""
        return self.configuration / f"{user}.kubeconfig"

    def owned(self) -> tuple[Path, ...]:
        """What goes with the cluster; the logs stay."""
        return (self.certificates, self.configuration, self.data, self.processes, self.kubeconfig, self.ready)

    def make(self) -> None:
        """Create the directories; keys are readable by the owner only."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o755)
        for directory in (self.configuration, self.logs, self.processes, self.data):
            directory.mkdir(exist_ok=True)
        self.certificates.mkdir(exist_ok=True, mode=0o700)
