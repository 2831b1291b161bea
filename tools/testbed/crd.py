"""Waits until an API server serves a CRD that was just applied."""

import json
import subprocess
from pathlib import Path
from typing import Final

from tools.cluster.api import kubectl
from tools.testbed.waiting import wait_for

_SECONDS: Final = 60.0


def wait_established(kubeconfig: Path, *names: str) -> None:
    """Wait until these CRDs (`PLURAL.GROUP`) are served; WaitTimeoutError with what is missing.

    `kubectl wait --for=condition=…` fails for a CRD that has no conditions yet, moments after it was made.
    """
    wait_for(f"the API server to serve {', '.join(names)}", lambda: _missing(kubeconfig, names), _is_empty, _SECONDS)


def _missing(kubeconfig: Path, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not _is_established(kubeconfig, name)]


def _is_established(kubeconfig: Path, name: str) -> bool:
    command: list[str | Path] = [kubectl(), "--kubeconfig", kubeconfig, "get", "crd", name, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    conditions = (json.loads(done.stdout).get("status") or {}).get("conditions") or () if done.returncode == 0 else ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _is_empty(missing: list[str]) -> bool:
    return not missing
