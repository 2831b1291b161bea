"""What the operator's benchmark runs on: an API server with fake nodes, engines for their pods, and the operator.

Everything shares the cores of this machine, as it would on a small control plane.
"""

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from bench.operator_admin import Admin, Name, State
from dsd_operator.render.labels import DEPLOYMENT_LABEL
from dsd_operator.render.names import names_for
from tests.integration.conftest import log_in, prepare
from tests.integration.operator_process import OperatorProcess
from tools.cluster.api import ApiOnlyCluster
from tools.testbed import fake_nodes
from tools.testbed.fake_engines import FakeEngines, Pod
from tools.testbed.kube import Kube

NETWORK: Final = IPv4Network("127.64.0.0/19")
NODES: Final = 5
_QUIET_SECONDS: Final = 2.0
"""Without a request to the API server the operator counts as idle."""

_START_SECONDS: Final = 600.0
_COUNTERS: Final = ("dsd_operator_api_requests_total{", "dsd_operator_reconcile_total{")
_WRITES: Final = ("PATCH", "POST", "PUT", "DELETE")


@dataclass(frozen=True)
class Requests:
    """Requests to the API server by verb, and passes."""

    verbs: dict[str, float]
    passes: float

    def __sub__(self, other: "Requests") -> "Requests":
        verbs = {verb: count - other.verbs.get(verb, 0.0) for verb, count in self.verbs.items()}
        return Requests(verbs, self.passes - other.passes)

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self.verbs.values())

    @property
    def writes(self) -> float:
        """Those that change something, tokens included."""
        return sum(self.verbs.get(verb, 0.0) for verb in _WRITES)


@dataclass
class Fleet:
    """The cluster and the operator under measurement."""

    admin: Admin
    engines: FakeEngines
    kube: Kube
    start_operator: Callable[..., OperatorProcess]
    operator: OperatorProcess = field(init=False)
    addresses: dict[Name, list[str]] = field(default_factory=dict)
    """Of the pods of each resource."""
    peaks: list[float] = field(default_factory=lambda: [0.0])
    started: bool = False

    def start(self, **settings: str) -> None:
        """Start the operator, in place of the one that runs; without waiting."""
        if self.started:
            self.peaks.append(self.memory("VmHWM"))
            self.operator.terminate()
        self.started = True
        self.operator = self.start_operator(**settings)

    async def operator_ready(self) -> float:
        """Wait until the operator says that each resource had its first pass; when it did."""
        async with asyncio.timeout(_START_SECONDS):
            while True:
                if await asyncio.to_thread(self.operator.ready):
                    return time.monotonic()
                await asyncio.sleep(0.1)

    async def until_ready(self, names: Sequence[Name], pods: int, seconds: float) -> float:
        """Wait until all of these are Ready, and have so many pods with the schedule; when they were."""

        def reached(states: Mapping[Name, State]) -> bool:
            return all((s := states.get(name)) is not None and s.ready and s.applied == pods for name in names)

        return await self.admin.until(f"{len(names)} deployments are not Ready", reached, seconds)

    async def until_applied(self) -> float:
        """Wait until every pod has the schedule of its resource, as the status shows it."""

        def reached(states: Mapping[Name, State]) -> bool:
            return all(s.current and s.applied == s.total for s in states.values())

        return await self.admin.until("some pods do not have the schedule", reached, _START_SECONDS)

    def requests(self) -> Requests:
        """What the operator has asked of the API server so far."""
        lines = [line for line in self.operator.metrics().splitlines() if line.startswith(_COUNTERS)]
        verbs: dict[str, float] = {}
        passes = 0.0
        for line in lines:
            if verb := re.search(r'verb="([A-Z]+)"', line):
                verbs[verb[1]] = verbs.get(verb[1], 0.0) + float(line.split()[-1])
            else:
                passes += float(line.split()[-1])
        return Requests(verbs, passes)

    def memory(self, field: str) -> float:
        """VmRSS or VmHWM of the operator's process, in bytes."""
        status = Path(f"/proc/{self.operator.pid}/status").read_text()
        kib = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
        if kib is None:
            raise RuntimeError(f"there is no {field} of the operator: it ended")
        return float(kib[1]) * 1024

    def peak(self) -> float:
        """The most that any of the operator's processes had resident, in bytes."""
        return max(self.memory("VmHWM"), *self.peaks)

    async def idle(self, seconds: float = 300.0) -> Requests:
        """Wait until the operator asks for nothing any more; returns its counters."""
        deadline = time.monotonic() + seconds
        last = await asyncio.to_thread(self.requests)
        since = time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the operator is not idle after {seconds:g} s")
            await asyncio.sleep(0.5)
            now = await asyncio.to_thread(self.requests)
            if now != last:
                last, since = now, time.monotonic()
        return last

    async def find_pods(self, namespaces: Sequence[str]) -> None:
        """Learn the addresses of all pods."""
        self.addresses.clear()
        labels = {names_for(name).label: name for _, name in self.admin.states}
        for namespace in namespaces:
            for pod in (await self.admin.request("GET", f"/api/v1/namespaces/{namespace}/pods"))["items"]:
                name = labels[pod["metadata"]["labels"][DEPLOYMENT_LABEL]]
                self.addresses.setdefault((namespace, name), []).append(pod["status"]["podIP"])

    def pods(self, *names: Name) -> list[Pod]:
        """The engines of these resources."""
        return [self.engines.pods[address] for name in names for address in self.addresses[name]]


@asynccontextmanager
async def fleet() -> AsyncIterator[Fleet]:
    """Start everything but the operator; it all ends with the block."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dsd-bench-")))
        cluster = stack.enter_context(ApiOnlyCluster(nodes=True))
        prepare(cluster.kubeconfig)
        kube = Kube(cluster.kubeconfig)
        fake_nodes.add(kube, NETWORK, NODES)
        engines = stack.enter_context(FakeEngines(NETWORK))
        log_in(cluster.kubeconfig, directory / "kubeconfig")

        def start(**settings: str) -> OperatorProcess:
            made = OperatorProcess(directory / "kubeconfig", directory / "operator.log", **settings)
            stack.callback(made.close)
            return made.start(wait=False)

        async with Admin(cluster.kubeconfig) as admin:
            yield Fleet(admin, engines, kube, start)
