"""The user's kubeconfig: which context, which namespace, how to log in. As kubectl reads it; plain words for faults.

`cluster` makes requests with what this finds.
"""

import io
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes import client, config
from kubernetes.config import ConfigException, kube_config
from yaml import YAMLError

from kubectl_dsd.errors import Failure

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

TIMEOUT_SECONDS: Final = 15.0


@dataclass(frozen=True)
class Target:
    """What the command line says of the cluster; None: as the kubeconfig says."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    timeout: float | None = None
    """Seconds for one answer of the API server; None: TIMEOUT_SECONDS."""

    def over(self, outer: "Target") -> "Target":
        """This one, with what it leaves open taken from `outer` (options before the sub-command)."""
        return Target(
            self.kubeconfig or outer.kubeconfig,
            self.context or outer.context,
            self.namespace or outer.namespace,
            self.timeout or outer.timeout,
        )


@dataclass(frozen=True)
class Login:
    """A way into one cluster. `flags` make the real kubectl go the same way."""

    configuration: Any
    context: str
    namespace: str
    flags: tuple[str, ...]
    complaint: str = ""
    """What went wrong while credentials were fetched; tells only if the API server then refuses."""


def log_in(target: Target) -> Login:
    """Read the kubeconfig that kubectl would read; raises Failure."""
    paths = target.kubeconfig or os.environ.get("KUBECONFIG") or kube_config.KUBE_CONFIG_DEFAULT_LOCATION
    if not any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path):
        return _without_file(target, paths)
    complaints = io.StringIO()
    handler = logging.StreamHandler(complaints)
    root = logging.getLogger()
    root.addHandler(handler)  # the library logs failed credential plugins and goes on without
    try:
        loader = kube_config._get_kube_config_loader(filename=paths, active_context=target.context)
        configuration = client.Configuration()
        loader.load_and_set(configuration)
        found = loader.current_context
    except ConfigException as error:
        raise _unusable(paths, target.context, error) from error
    except (OSError, UnicodeError, YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"the kubeconfig {paths} cannot be read: {_first_line(error)}") from error
    finally:
        root.removeHandler(handler)
    namespace = target.namespace or (found.get("context") or {}).get("namespace") or "default"
    return Login(configuration, str(found["name"]), namespace, _flags(target), complaints.getvalue().strip())


def _without_file(target: Target, paths: str) -> Login:
    """Inside a pod its own service account, as kubectl does."""
    if target.kubeconfig or target.context or not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise Failure(
            f"there is no kubeconfig: {paths} does not exist",
            "Give one with --kubeconfig FILE or in the variable KUBECONFIG; `kubectl config view` shows what kubectl "
            "uses.",
        )
    try:
        configuration = client.Configuration()
        config.load_incluster_config(configuration)
        own = (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    except (ConfigException, OSError) as error:
        raise Failure(f"the pod's service account cannot be used: {_first_line(error)}") from error
    return Login(configuration, "in-cluster", target.namespace or own, _flags(target))


def _flags(target: Target) -> tuple[str, ...]:
    pairs = (("--kubeconfig", target.kubeconfig), ("--context", target.context))
    return tuple(part for flag, value in pairs if value for part in (flag, value))


def _unusable(paths: str, context: str | None, error: ConfigException) -> Failure:
    known = _contexts(paths)
    if context is not None and context not in known:
        listed = f"It has: {', '.join(known)}." if known else "It has none."
        return Failure(f"the kubeconfig {paths} has no context {context!r}", listed)
    if "current-context" in str(error):
        hint = f"Choose one with --context ({', '.join(known)}) or `kubectl config use-context`." if known else ""
        return Failure(f"the kubeconfig {paths} names no current context", hint)
    return Failure(f"the kubeconfig {paths} cannot be used: {_first_line(error)}")


def _contexts(paths: str) -> list[str]:
    try:
        merged = kube_config.KubeConfigMerger(paths).config
        return [str(context.value["name"]) for context in merged["contexts"]] if merged is not None else []
    except (ConfigException, OSError, YAMLError, ValueError, KeyError, TypeError, AttributeError):
        return []


def contexts(target: Target) -> list[str]:
    """Names of the contexts that --context can take; empty where the kubeconfig is missing or broken."""
    return _contexts(target.kubeconfig or os.environ.get("KUBECONFIG") or kube_config.KUBE_CONFIG_DEFAULT_LOCATION)


def _first_line(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return " ".join(text.split())[:300]
