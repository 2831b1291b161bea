"""One pass over one resource: observe, plan, apply and push at the same time, status.

Idempotent, and level-triggered: it never asks what woke it. A pass that finds nothing to do writes nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from dsd_operator.api import DSDDeployment, InvalidResource, parse
from dsd_operator.cluster import resources, scaling
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.keys import Keys
from dsd_operator.cluster.observe import Snapshot, existing_claim, look
from dsd_operator.cluster.tokens import Tokens
from dsd_operator.metrics import Metrics
from dsd_operator.reconcile import apply, handover, history, push, revisions
from dsd_operator.reconcile.applier import Applier
from dsd_operator.reconcile.auth import audience, auth_for
from dsd_operator.reconcile.crashes import earlier_crashes
from dsd_operator.reconcile.delivery import Target
from dsd_operator.reconcile.events import Recorder
from dsd_operator.reconcile.memory import Memory
from dsd_operator.reconcile.push import Pusher
from dsd_operator.reconcile.queue import Key
from dsd_operator.reconcile.refusals import with_refusals
from dsd_operator.reconcile.restarts import new_restarts
from dsd_operator.reconcile.watches import Watches
from dsd_operator.render import leader_worker_set as groups
from dsd_operator.render.config_map import read
from dsd_operator.render.context import RenderContext
from dsd_operator.render.extras import unwanted
from dsd_operator.render.names import names_for
from dsd_operator.render.neighbours import Neighbours
from dsd_operator.render.plan import plan
from dsd_operator.render.preflight import problems, schedule_problems
from dsd_operator.render.workload import kind_of
from dsd_operator.status.observed import Outcome, PushResult, PushState
from dsd_operator.status.summarize import summarize, transitions
from dsd_operator.status.unreadable import unreadable
from dsd_runtime.protocol import Revision
from dsd_runtime.schedule import Problem

_ROUNDS: Final = 2
"""The second one only when a pod turned out to hold a newer revision than any that we knew of, or refused a token and
the signing keys, read anew, are others: the file must bring them before the pod can accept one."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Done:
    """What the pass leaves to be done."""

    gone: bool = False
    retry: bool = False
    delay: float = 0.0
    """Least number of seconds before a retry."""
    again: float = 0.0
    """Seconds after which another pass is worth it though this one succeeded; 0: no need."""


@dataclass(frozen=True)
class _Work:
    """The part of a pass that changes the cluster and the pods, and what came of it."""

    snapshot: Snapshot
    revision: Revision | None
    wanted_hash: str | None
    children: apply.Report
    pods: push.Report

    def outcome(self, found: Sequence[Problem]) -> Outcome:
        """For the status."""
        return Outcome(self.revision, self.wanted_hash, tuple(found), self.children.failures, self.pods.results)


@dataclass
class Reconciler:
    """Reconciles any resource; keeps a little memory for each."""

    client: Client
    keys: Keys
    tokens: Tokens
    applier: Applier
    pusher: Pusher
    recorder: Recorder
    metrics: Metrics
    watches: Watches
    runtime_image: str
    fs_group: int | None
    neighbours: Neighbours
    now: Callable[[], datetime]
    clock: Callable[[], float]
    """Monotonic seconds."""
    look_seconds: float
    """Between two looks at what no watch shows and no pass reads."""
    _memories: dict[Key, Memory] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> Done:
        """Bring the cluster and the pods to what the resource says; raises ApiError if they cannot even be read."""
        return await self._reconcile(key, groups_too=self._may_have_groups(key))

    async def _reconcile(self, key: Key, groups_too: bool) -> Done:
        found = await look(self.client, *key, groups_too)
        body = await self.client.get(resources.DSD_DEPLOYMENT, *key)
        if body is None:
            self._forget(key)
            return Done(gone=True)
        self.watches.read(body)
        if body["metadata"].get("deletionTimestamp"):
            return Done()  # the garbage collector deletes the children; making them anew would fight it
        try:
            resource = parse(body)
        except InvalidResource as error:
            await self._publish(body, unreadable(body, error.problems, self._timestamp()))
            return Done()
        if groups.is_wanted(resource) and not groups_too:
            return await self._reconcile(key, groups_too=True)
        memory, snapshot = self._memory(key, resource), await self._with_scaler(resource, found.of(resource))
        _note_groups(resource, snapshot, memory)
        self.metrics.engine_restarts(*key, new_restarts(snapshot.observed, memory))
        work = await self._work(key, resource, snapshot, memory)
        for child in (work.snapshot.live.get("Deployment"), work.snapshot.observed.config_map):
            self.watches.read(child)
        for child in work.children.applied:
            self.watches.echoes.wrote(child)
        outcome = work.outcome(problems(resource))
        claim = await existing_claim(self.client, resource)
        crashes = earlier_crashes(resource, work.snapshot.observed, memory)
        workloads = with_refusals(work.snapshot.observed.workloads, resource.status, memory, self.clock())
        observed = replace(work.snapshot.observed, claim=claim, crashes=crashes, workloads=workloads)
        observed = replace(observed, monitoring_named=bool(self.neighbours.monitoring))
        await self._publish(body, summarize(resource, observed, outcome, self._timestamp()))
        scaled = scaling.LOOK_AGAIN_SECONDS if snapshot.scaled_by else 0.0
        again = apply.soonest(work.children.again, work.pods.again, scaled)
        return Done(retry=work.children.retry, delay=work.children.delay, again=again)

    async def _with_scaler(self, resource: DSDDeployment, snapshot: Snapshot) -> Snapshot:
        workload = snapshot.observed.workload(kind_of(resource))
        name = await scaling.scaler_of(self.client, workload.live if workload else None)
        return replace(snapshot, scaled_by=name)

    async def _work(self, key: Key, resource: DSDDeployment, snapshot: Snapshot, memory: Memory) -> _Work:
        if schedule_problems(resource):
            return await self._without_schedule(key, resource, snapshot, memory)
        children, overtaken = apply.Report(), _reported(memory)
        for _ in range(_ROUNDS):
            revision = self._revision(resource, snapshot, overtaken, memory)
            target = Target(key, audience(key), revision, resource.spec.schedule, resource.spec.smoothing)
            self._note_change(resource, target, memory)
            context = await self._context(key, resource, snapshot, revision)
            planned = await history.planned(self.client, resource, snapshot.live, context, memory)
            keys = self.keys.known()
            children, pods = await asyncio.gather(
                self.applier.apply(key, planned.manifests, snapshot.live, memory, unwanted(resource)),
                self._push(target, snapshot, memory),
            )
            children += planned.report
            snapshot = snapshot.with_applied(children.applied)
            if not pods.overtaken and self.keys.known() == keys:
                break
            overtaken = pods.overtaken or overtaken
        children += await handover.release(self.client, resource, snapshot.observed)
        children += await history.keep(self.client, memory, self.clock(), self.look_seconds)
        return _Work(snapshot, revision, target.hash, children, pods)

    async def _push(self, target: Target, snapshot: Snapshot, memory: Memory) -> push.Report:
        report = await self.pusher.push(target, snapshot.observed.pods, memory)
        self._measure(report.results, memory)  # now, not when the children are applied as well
        return report

    async def _without_schedule(self, key: Key, resource: DSDDeployment, snapshot: Snapshot, memory: Memory) -> _Work:
        """The schedule itself cannot be used: the plan leaves out what needs it, and pods keep what they have."""
        revision = self._revision(resource, snapshot, (), memory)
        manifests = plan(resource, await self._context(key, resource, snapshot, revision))
        applied = await self.applier.apply(key, manifests, snapshot.live, memory, unwanted(resource))
        return _Work(snapshot.with_applied(applied.applied), None, None, applied, push.Report())

    def _revision(
        self, resource: DSDDeployment, snapshot: Snapshot, seen: Sequence[Revision], memory: Memory
    ) -> Revision:
        now_ms = int(self.now().timestamp() * 1000)
        return revisions.choose(resource, snapshot.observed.config_map, seen, memory, now_ms)

    async def _context(
        self, key: Key, resource: DSDDeployment, snapshot: Snapshot, revision: Revision
    ) -> RenderContext:
        config_map = snapshot.observed.config_map
        stored = read(config_map) if config_map is not None else None
        auth = await auth_for(key, self.keys, self.tokens.subject, stored)
        return RenderContext(
            self.runtime_image,
            revision,
            auth,
            held=handover.held(resource, snapshot.observed),
            grouped=groups.any_member(snapshot.found.pods),
            scaled_by=snapshot.scaled_by,
            neighbours=self.neighbours,
            fs_group=self.fs_group,
        )

    async def _publish(self, body: Mapping[str, Any], status: dict[str, Any]) -> None:
        """Write the status if it changed, and tell the transitions; the metrics follow in any case."""
        meta, old = body["metadata"], body.get("status") or {}
        if status != old:
            identity = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
            kind = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
            written = await self.client.apply_status({**kind, "metadata": identity, "status": status})
            self.watches.read(written)
            if written["metadata"]["generation"] == meta["generation"]:  # else it holds a spec that is still to be read
                self.watches.echoes.wrote(written)
            await self.recorder.post(body, transitions(old, status))
        self.metrics.set_status(meta["namespace"], meta["name"], status)

    def _note_change(self, resource: DSDDeployment, target: Target, memory: Memory) -> None:
        if memory.wanted_hash not in (None, target.hash):
            memory.changed_at = self.watches.since(*target.key, resource.metadata.generation)
        memory.wanted_hash = target.hash

    def _measure(self, results: Sequence[PushResult], memory: Memory) -> None:
        """Observe how long a changed schedule took, once all that are ready have it."""
        ready = [r for r in results if r.state is not PushState.NOT_READY]
        if memory.changed_at is None or any(r.state is not PushState.APPLIED for r in ready):
            return
        if ready:
            self.metrics.schedule_apply_seconds.observe(self.clock() - memory.changed_at)
        memory.changed_at = None

    def _may_have_groups(self, key: Key) -> bool:
        """Whether a look for a LeaderWorkerSet is worth its requests; most resources never have one."""
        memory = self._memories.get(key)
        return memory is None or groups.KIND not in memory.absent

    def _memory(self, key: Key, resource: DSDDeployment) -> Memory:
        memory = self._memories.get(key)
        if memory is not None and memory.uid == resource.metadata.uid:
            return memory
        if memory is not None:
            self._drop(memory)
        made = self._memories[key] = Memory(resource.metadata.uid)
        return made

    def _drop(self, memory: Memory) -> None:
        self.applier.forget(memory)
        self.pusher.forget(memory)

    def _forget(self, key: Key) -> None:
        memory = self._memories.pop(key, None)
        if memory is not None:
            _log.info("The resource is gone")
            self._drop(memory)
        self.metrics.remove(*key)
        names = names_for(key.name)
        self.watches.forget(key.namespace, key.name, names.base, names.group)
        self.tokens.forget(audience(key))

    def _timestamp(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _note_groups(resource: DSDDeployment, snapshot: Snapshot, memory: Memory) -> None:
    if groups.is_wanted(resource) or groups.KIND in snapshot.live:
        memory.absent.discard(groups.KIND)
    else:
        memory.absent.add(groups.KIND)


def _reported(memory: Memory) -> tuple[Revision, ...]:
    """The revisions that the pods spoke of last; a pod may be ahead of everything that is stored."""
    deliveries = (record.delivery for record in memory.pods.values())
    return tuple(d.reported for d in deliveries if d is not None and d.reported is not None)
