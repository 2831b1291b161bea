"""Kubeconfig files with everything embedded, so that one file is enough."""

import base64
import json
import os
from pathlib import Path

from tools.cluster.certificates import Authority

_NAME = "dsd-local"


def render(server: str, authority: Authority, user: str) -> str:
    """A kubeconfig for ``user``, whose pair the authority holds. JSON, which every YAML parser reads."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": _NAME,
            "clusters": [{"name": _NAME, "cluster": {"server": server, "certificate-authority-data": _ca(authority)}}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": user}}],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _encode(authority.certificate(user)),
                        "client-key-data": _encode(authority.key(user)),
                    },
                }
            ],
        },
        indent=1,
    )


def write(path: Path, server: str, authority: Authority, user: str) -> None:
    """Write it readable by the owner only."""
    path.touch(mode=0o600)
    os.chmod(path, 0o600)
    path.write_text(render(server, authority, user))


def _ca(authority: Authority) -> str:
    return _encode(authority.certificate("ca"))


def _encode(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
