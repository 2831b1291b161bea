"""What tests, the demo and scripts import: an API server of one's own, and the full node's kubeconfig and programs."""

import json
import os
import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.cluster import api_only, components, control_plane, gobuild, paths, versions
from tools.cluster import images as _images
from tools.cluster.control_plane import ControlPlane
from tools.cluster.errors import ClusterError
from tools.cluster.images import Images
from tools.cluster.paths import Layout
from tools.cluster.processes import Identity, identify, is_alive

__all__ = ["ApiOnlyCluster", "ClusterError", "Images", "full_node_kubeconfig", "images", "kubectl", "program"]

_STOP_GRACE_SECONDS = 2.0


def program(name: str) -> Path:
    """The path of a pinned program (``kubectl``, ``helm``, ...), built now if it is not there yet."""
    tools = (*versions.ALL_TOOLS, *versions.ON_DEMAND_TOOLS)
    for tool in tools:
        if tool.name == name:
            gobuild.ensure([tool])
            return gobuild.binary(tool)
    raise ClusterError(f"no such program: {name}; there are {', '.join(tool.name for tool in tools)}")


def kubectl() -> Path:
    """The path of the pinned kubectl."""
    return program(versions.KUBECTL.name)


def full_node_kubeconfig() -> Path:
    """The kubeconfig of the cluster to use: the file in ``DSD_KUBECONFIG``, else the local full node's.

    Raises ClusterError if neither exists.
    """
    named = os.environ.get("DSD_KUBECONFIG")
    path = Path(named) if named else Layout(paths.node_state()).kubeconfig
    if not path.exists():
        hint = "DSD_KUBECONFIG names it" if named else "run `python3 -m tools.cluster up` first"
        raise ClusterError(f"there is no kubeconfig at {path}: {hint}")
    return path


def images(*, build: bool = True) -> Images:
    """References of the operator's and the runtime's image of the tree as it is now, built and pushed if need be.

    With ``DSD_KUBECONFIG`` they are the user's: ``DSD_OPERATOR_IMAGE`` and ``DSD_RUNTIME_IMAGE``.
    """
    return _images.ensure() if build else _images.current()


class ApiOnlyCluster:
    """etcd, API server and controllers for one test run, as a context manager.

    Starts in about 4 s once the programs are built. Whatever ends the test run, also SIGKILL, the next use cleans up.
    """

    def __init__(self, admission_plugins: tuple[str, ...] = (), audit: bool = False, nodes: bool = False) -> None:
        """``admission_plugins`` are those of the API server that are not on by default; ``audit`` see :meth:`audit`.

        With ``nodes`` pods are scheduled to fake nodes that somebody creates (``tools.testbed.fake_nodes``).
        """
        self._admission_plugins = admission_plugins
        self._audit = audit
        self._nodes = nodes
        self._state: Path | None = None
        self._plane: ControlPlane | None = None
        self._starts: list[tuple[datetime, datetime]] = []

    def __enter__(self) -> "ApiOnlyCluster":
        root = paths.cache_root() / "api-only"
        root.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(root)
        self._state = Path(tempfile.mkdtemp(prefix="run-", dir=root))
        owner = identify(os.getpid())
        assert owner is not None, "this process runs"
        Layout(self._state).owner.write_text(json.dumps(owner.__dict__))
        try:
            self._plane = api_only.start(self._state, self._admission_plugins, self._audit, self._nodes)
        except BaseException:
            api_only.stop(self._state)  # the logs stay for whoever reads the error; the next run removes them
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._state is not None:
            _remove(self._state)
        self._plane = self._state = None

    @property
    def _running(self) -> ControlPlane:
        if self._plane is None:
            raise ClusterError("the cluster does not run: use it inside `with ApiOnlyCluster() as cluster:`")
        return self._plane

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._running.layout.kubeconfig

    @property
    def server(self) -> str:
        """The API server's URL; it stays the same over :meth:`stop_apiserver` and :meth:`start_apiserver`."""
        return self._running.server

    @property
    def logs(self) -> Path:
        """The directory with one log per component."""
        return self._running.layout.logs

    def audit(self, user: str) -> list[dict[str, Any]]:
        """The audit events of every answered request of a user, oldest first; needs ``audit=True``.

        Without those of a :meth:`start_apiserver`: until its copy of the roles is complete, the API server refuses all.
        """
        with self._running.audit_log.open() as lines:
            events = [json.loads(line) for line in lines if line.endswith("\n")]
        # Whoever is not let in, a token that has expired for example, has no name in the record.
        return [event for event in events if event["user"].get("username") == user and not self._was_starting(event)]

    def _was_starting(self, event: dict[str, Any]) -> bool:
        received = datetime.fromisoformat(event["requestReceivedTimestamp"])
        return any(began <= received <= ready for began, ready in self._starts)

    def stop_apiserver(self) -> None:
        """Stop the API server: clients see refused connections. etcd and the controllers stay."""
        components.daemon(self._running.layout, "kube-apiserver").stop(_STOP_GRACE_SECONDS)

    def start_apiserver(self) -> None:
        """Start the API server again, with all its data, and wait until it and the controllers work."""
        plane = self._running
        began = datetime.now(UTC)
        components.start(plane.layout, control_plane.apiserver(plane))
        self._starts.append((began, datetime.now(UTC)))
        components.start(plane.layout, control_plane.controller_manager(plane))

    def restart_etcd(self) -> None:
        """Stop etcd and start it again with all its data; the API server stays, and is lost in between."""
        plane = self._running
        components.daemon(plane.layout, "etcd").stop(_STOP_GRACE_SECONDS)
        components.start(plane.layout, control_plane.etcd(plane))
        components.start(plane.layout, control_plane.apiserver(plane), control_plane.controller_manager(plane))

    def rotate_token_keys(self, *names: str) -> None:
        """Restart the API server with these key pairs of service-account tokens; the first signs. New ones are made."""
        authority = self._running.authority
        for name in names:
            if not authority.key(name).exists():
                authority.create_key_pair(name)
        self.stop_apiserver()
        self._plane = replace(self._running, token_keys=names)
        self.start_apiserver()


def _remove(state: Path) -> None:
    api_only.stop(state)
    shutil.rmtree(state, ignore_errors=True)


def _remove_abandoned(root: Path) -> None:
    """Remove the clusters of test runs that ended without cleaning up."""
    for state in root.glob("run-*"):
        try:
            owner = Identity(**json.loads(Layout(state).owner.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            continue  # being made this very moment
        if not is_alive(owner):
            _remove(state)
