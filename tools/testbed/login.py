"""A kubeconfig of a service account's own: with it a program has that account's rights, and no others."""

import os
from pathlib import Path
from typing import Final

import yaml

from tools.cluster import shell
from tools.cluster.api import kubectl

_LIFETIME: Final = "2h"
"""Longer than any test run."""


def log_in(kubeconfig: Path, namespace: str, account: str, path: Path) -> Path:
    """Write the administrator's kubeconfig with a fresh token of the account in place of his own; returns `path`."""
    wanted = ("create", "token", account, "--namespace", namespace, f"--duration={_LIFETIME}")
    token = shell.run([kubectl(), "--kubeconfig", kubeconfig, *wanted]).strip()
    content = yaml.safe_load(kubeconfig.read_text())
    content["users"] = [{"name": account, "user": {"token": token}}]
    content["contexts"][0]["context"]["user"] = account
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(content, file)
    return path
