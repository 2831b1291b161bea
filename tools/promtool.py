"""promtool, which lints a page of metrics: the one on the PATH, else the one in Debian's package `prometheus`.

The package is unpacked and not installed: promtool is one static program, while the installation would bring a server
with its service and its web pages.
"""

import shutil
import tempfile
from pathlib import Path

from tools.cluster import locks, shell
from tools.cluster.errors import ClusterError
from tools.cluster.paths import binaries_root

_PACKAGE = "prometheus"


def ensure() -> Path:
    """The program; fetched once. Raises ClusterError where there is neither one nor a Debian mirror."""
    found = shutil.which("promtool")
    if found is not None:
        return Path(found)
    kept = binaries_root() / "promtool" / "promtool"
    with locks.locked(binaries_root() / ".promtool.lock", "fetching promtool"):
        if not kept.exists():
            _fetch(kept)
    return kept


def _fetch(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # apt downloads as a user of its own
        try:
            shell.run(["apt-get", "download", "-q", _PACKAGE], cwd=folder)
        except ClusterError:  # no package lists yet
            shell.run(["apt-get", "update", "-q"])
            shell.run(["apt-get", "download", "-q", _PACKAGE], cwd=folder)
        (package,) = folder.glob("*.deb")
        shell.run(["dpkg-deb", "-x", package, folder / "unpacked"])
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        shutil.copy2(folder / "unpacked" / "usr" / "bin" / "promtool", partial)
        partial.replace(target)
