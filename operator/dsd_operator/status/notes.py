"""Remarks that change no condition: what vLLM resolved differently, and schedules with a catch."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from dsd_operator.api import DSDDeployment
from dsd_operator.render.budget import shortage
from dsd_operator.render.verdict import prepared_tokens
from dsd_operator.render.workload import kind_of
from dsd_operator.status.observed import Observed, PushResult, PushState
from dsd_operator.status.pod_notes import pod_notes
from dsd_runtime.protocol import Envelope

_REFERENCE: Final = re.compile(r"\$\([A-Za-z_][A-Za-z0-9_.-]*\)")
"""To a variable, in the kubelet's spelling."""


def schedule_notes(resource: DSDDeployment, answers: Iterable[PushResult]) -> list[str]:
    """Remarks on the schedule; `answers` tell the max_num_seqs that vLLM chose where the resource names none."""
    told = list(answers)
    fits = _out_of_range(resource, list(_envelopes(told)))
    return [*_unprepared(resource), *_never(resource), *fits, *smoothing_notes(resource, told), *_started_with(told)]


def smoothing_notes(resource: DSDDeployment, answers: Iterable[PushResult]) -> list[str]:
    """Where `spec.smoothing` is not in force although the pod has the schedule: vLLM's own static table knows none."""
    off = sum(answer.state is PushState.PLUGIN_OFF for answer in answers)
    if resource.spec.smoothing is None or not off:
        return []
    pods = "1 pod, whose" if off == 1 else f"{off} pods, whose"
    return [f"spec.smoothing has no effect in {pods} runtime plugin is off: vLLM's own table cannot smooth"]


def _started_with(answers: Iterable[PushResult]) -> Iterator[str]:
    """Pods that have the schedule because they were started with it."""
    off = [answer for answer in answers if answer.state is PushState.PLUGIN_OFF]
    if off:
        pods = "1 pod was" if len(off) == 1 else f"{len(off)} pods were"
        yield f"{pods} started with it, and another one takes a restart: {off[0].message}"


def envelope_notes(resource: DSDDeployment) -> list[str]:
    """Remarks on what the pods are started with."""
    return [*_small_steps(resource), *_head_not_split(resource), *_not_expanded(resource), *pod_notes(resource)]


def scaling_notes(resource: DSDDeployment, observed: Observed) -> list[str]:
    """Where an autoscaler scales the workload itself: the resource's own number is not in force."""
    if not observed.scaled_by:
        return []
    way_out = f"let it scale the DSDDeployment {resource.metadata.name} instead"
    why = f"scales the {kind_of(resource)} itself, so spec.replicas ({resource.spec.replicas}) is not used"
    return [f"HorizontalPodAutoscaler {observed.scaled_by} {why}: {way_out}"]


def monitoring_notes(resource: DSDDeployment, observed: Observed) -> list[str]:
    """Where the policy that the resource asks for cuts off the PodMonitor that it asks for."""
    policy, monitor = resource.spec.network_policy, resource.spec.monitoring.pod_monitor
    named = observed.monitoring_named if policy.monitoring is None else bool(policy.monitoring)
    if named or not (policy.enabled and monitor.enabled):
        return []
    consequence = "a Prometheus that is none of its clients cannot scrape what the PodMonitor names"
    way_out = "set spec.networkPolicy.monitoring, or the chart's networkPolicy.monitoring.from"
    return [f"the NetworkPolicy names no monitoring, so {consequence}: {way_out}"]


def resolved_notes(resource: DSDDeployment, answers: Iterable[PushResult]) -> list[str]:
    """Where what vLLM resolved differs from the resource; each remark once, however many pods say it."""
    found = (note for envelope in _envelopes(answers) for note in _differences(resource, envelope))
    return list(dict.fromkeys(found))


def _envelopes(answers: Iterable[PushResult]) -> Iterator[Envelope]:
    for answer in answers:
        if answer.status is not None and answer.status.envelope is not None:
            yield answer.status.envelope


def _unprepared(resource: DSDDeployment) -> Iterator[str]:
    prepared = prepared_tokens(resource.spec)
    scheduled = {r.num_speculative_tokens for r in resource.spec.schedule}
    missing = sorted(scheduled - set(prepared))
    if missing:
        yield (
            f"K={_listed(missing)} is outside drafter.preparedTokens ({_listed(prepared)}): correct, but it may run "
            "without its CUDA graph"
        )


def _never(resource: DSDDeployment) -> Iterator[str]:
    if all(r.num_speculative_tokens == 0 for r in resource.spec.schedule):
        yield "K is 0 everywhere: nothing is drafted, the drafter stays loaded"


def _out_of_range(resource: DSDDeployment, envelopes: list[Envelope]) -> Iterator[str]:
    known = [resource.spec.engine.max_num_seqs, *(envelope.max_num_seqs for envelope in envelopes)]
    limit = max((value for value in known if value is not None), default=None)
    unused = [r.start_batch_size for r in resource.spec.schedule if limit is not None and r.start_batch_size > limit]
    if unused:
        yield f"ranges from {unused[0]} on are never reached: max_num_seqs is {limit}"


def _small_steps(resource: DSDDeployment) -> Iterator[str]:
    short = shortage(resource.spec)
    if short is not None:
        yield f"a full batch does not fit into one step: {short}"


def _head_not_split(resource: DSDDeployment) -> Iterator[str]:
    """vLLM reads the drafter's own size for draft_model and dspark only; a head is loaded like its target model."""
    spec = resource.spec
    asked, target = spec.drafter.tensor_parallel_size, spec.engine.tensor_parallel_size or 1
    if asked is not None and asked != target and spec.drafter.method not in ("draft_model", "dspark"):
        yield f"drafter.tensorParallelSize {asked} has no effect: a head is split like the target model, {target} ways"


def _not_expanded(resource: DSDDeployment) -> Iterator[str]:
    """In a plain pod the kubelet would put the variable's value there. As a password it would be one that all know."""
    written = [found for argument in resource.spec.engine.extra_args for found in _REFERENCE.findall(argument)]
    if written:
        yield (
            f"engine.extraArgs has {', '.join(dict.fromkeys(written))}, which reaches vLLM as it is written: set what "
            "vLLM reads from its environment in engine.env, such as VLLM_API_KEY from a Secret"
        )


def _differences(resource: DSDDeployment, envelope: Envelope) -> Iterator[str]:
    spec = resource.spec
    asked_and_got = {
        "drafter.method": (spec.drafter.method, envelope.method),
        "drafter.numSpeculativeTokens": (spec.drafter.num_speculative_tokens, envelope.num_speculative_tokens),
        "engine.maxNumSeqs": (spec.engine.max_num_seqs or envelope.max_num_seqs, envelope.max_num_seqs),
    }
    if spec.engine.model_runner != "Auto":
        asked_and_got["engine.modelRunner"] = (spec.engine.model_runner, envelope.model_runner)
    for field, (asked, got) in asked_and_got.items():
        if asked != got:
            yield f"{field} is {asked}, vLLM resolved it to {got}"
    if envelope.parallel_drafting and not spec.drafter.parameters.get("parallel_drafting"):
        yield "vLLM turned parallel drafting on"
    if envelope.verify_only:
        yield "this method drafts the maximum whatever K is; K saves verification only"


def _listed(values: Iterable[int]) -> str:
    return ", ".join(str(value) for value in values)
