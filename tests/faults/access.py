"""The administrator's way to the API server, and the operator's kubeconfig with the proxy in it."""

import base64
import ssl
from pathlib import Path
from typing import Any

import httpx
import yaml

from tools.testbed.kube import Json

_TIMEOUT_SECONDS = 30.0


class Access:
    """Plain requests as the administrator; a context manager. `kubeconfig` is the administrator's."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        """`directory` takes the key files, which the standard library reads from nowhere else."""
        self.kubeconfig = kubeconfig
        content = _load(kubeconfig)
        self.server: str = content["clusters"][0]["cluster"]["server"]
        self.tls = _tls(content, directory)
        self._client = httpx.Client(base_url=self.server, verify=self.tls, trust_env=False, timeout=_TIMEOUT_SECONDS)

    def __enter__(self) -> "Access":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str) -> Json | None:
        """The decoded answer; None for what is not there."""
        answer = self._client.get(path)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        found: Json = answer.json()
        return found


def redirect(kubeconfig: Path, address: str, path: Path) -> Path:
    """A kubeconfig like this one, whose API server is at `address`."""
    content = _load(kubeconfig)
    content["clusters"][0]["cluster"] = {"server": address}
    path.write_text(yaml.safe_dump(content))
    return path


def _tls(content: Any, directory: Path) -> ssl.SSLContext:
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    files = {name: directory / name for name in ("client-certificate", "client-key")}
    for name, path in files.items():
        path.write_bytes(base64.b64decode(user[f"{name}-data"]))
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    context.load_cert_chain(files["client-certificate"], files["client-key"])
    return context


def _load(kubeconfig: Path) -> Any:
    return yaml.safe_load(kubeconfig.read_text())
