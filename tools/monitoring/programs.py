"""`prometheus` and `promtool`: those of Debian's package `prometheus`, unpacked into the user's cache, by version.

The package is unpacked and not installed: the two are single programs, while the installation would bring a service
that starts by itself. `server` runs the one; tests of rules and of metrics pages run the other.
"""

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Final

from tools.cluster import locks, shell
from tools.cluster.errors import ClusterError
from tools.cluster.paths import binaries_root

_PACKAGE: Final = "prometheus"
_PROGRAMS: Final = ("prometheus", "promtool")


def prometheus() -> Path:
    """The server; fetched once. Raises ClusterError where there is neither one nor a Debian mirror."""
    return _folder() / "prometheus"


def promtool() -> Path:
    """The checker of rules and metrics, and the writer of blocks; else like `prometheus`."""
    return _folder() / "promtool"


@functools.cache
def _folder() -> Path:
    with locks.locked(binaries_root() / ".prometheus.lock", "fetching Prometheus"):
        version = _candidate()
        home = _home(version) if version else _newest_kept()
        if home is None:  # apt knows nothing yet
            shell.run(["apt-get", "update", "-q"])
            version = _candidate()
            if not version:
                raise ClusterError(f"apt on this machine does not know the package {_PACKAGE}: is it a Debian?")
            home = _home(version)
        if not all((home / name).exists() for name in _PROGRAMS):
            _fetch(home)
    return home


def _home(version: str) -> Path:
    return binaries_root() / f"prometheus-{version}"


def _candidate() -> str:
    """The version that apt would install; empty where it has no package lists."""
    try:
        shown = shell.run(["apt-cache", "show", "--no-all-versions", _PACKAGE])
    except ClusterError:
        return ""
    versions = [line.partition(" ")[2] for line in shown.splitlines() if line.startswith("Version: ")]
    return versions[0] if versions else ""


def _newest_kept() -> Path | None:
    kept = sorted(binaries_root().glob("prometheus-*"), key=lambda path: path.stat().st_mtime)
    return kept[-1] if kept else None


def _fetch(home: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # apt downloads as a user of its own
        try:
            shell.run(["apt-get", "download", "-q", _PACKAGE], cwd=folder)
        except ClusterError:  # the mirror has replaced the version that the lists name
            shell.run(["apt-get", "update", "-q"])
            shell.run(["apt-get", "download", "-q", _PACKAGE], cwd=folder)
        (package,) = folder.glob("*.deb")
        shell.run(["dpkg-deb", "-x", package, folder / "unpacked"])
        home.mkdir(parents=True, exist_ok=True)
        for program in _PROGRAMS:
            partial = home / f"{program}.partial"
            shutil.copy2(folder / "unpacked" / "usr" / "bin" / program, partial)
            partial.replace(home / program)
