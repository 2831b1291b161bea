"""No address of a package registry stands in the repository: the clients know theirs, and a mirror must serve too.

The names to look for come from the clients' own configuration on this machine.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.cluster.paths import REPOSITORY

_APT_SOURCES = Path("/etc/apt")
# In a process of its own: pip shuts out setuptools' distutils when it is imported, and PyTorch then cannot be.
_PIPS_DEFAULTS = "from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)"


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/").stdout


def _hosts() -> set[str]:
    sources = [*_APT_SOURCES.glob("sources.list"), *_APT_SOURCES.glob("sources.list.d/*")]
    go = _output("go", "env", "GOPROXY", "GOSUMDB").replace(",", "\n")
    found = [*_output(sys.executable, "-c", _PIPS_DEFAULTS).split(), *go.split()]
    found += [_output("npm", "config", "get", "registry"), _output("pip", "config", "get", "global.index-url")]
    found += [address for source in sources for address in re.findall(r"https?://[^\s/]+", source.read_text())]
    hosts = {re.sub(r"^https?://", "", address.strip()).split("/")[0] for address in found}
    return {host for host in hosts if "." in host}


def _files() -> list[Path]:
    git = ("git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY))  # whoever owns the checkout
    listed = _output(*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [REPOSITORY / name for name in listed.split("\0") if name and (REPOSITORY / name).is_file()]


def test_no_file_names_a_registry() -> None:
    hosts, files = _hosts(), _files()
    assert len(hosts) >= 3
    assert len(files) > 50
    found = [
        f"{path.relative_to(REPOSITORY)}: {host}"
        for path in files
        for host in hosts
        if host.encode() in path.read_bytes()
    ]
    assert found == []
