"""Tensor parallel sizes against the GPUs that a pod asks for, of any vendor."""

from typing import Any

import pytest

from dsd_operator.render.devices import device_problems, needed, spare
from dsd_operator.render.owned import engine_container
from dsd_operator.render.preflight import envelope_problems
from tests.unit.resources import manifests, resource

GPUS = (
    "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-3g.40gb", "amd.com/gpu", "amd.com/cpx_nps4",
    "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi", "google.com/tpu",
)  # fmt: skip


def messages(changes: dict[str, Any]) -> list[str]:
    return [f"{problem.field}: {problem.message}" for problem in envelope_problems(resource(changes))]


def remarks(changes: dict[str, Any]) -> list[str]:
    spec = resource(changes).spec
    return list(spare(spec, engine_container(spec.pod_template)[1]))


def split(size: int, **more: Any) -> dict[str, Any]:
    return {"engine.tensorParallelSize": size, **more}


@pytest.mark.parametrize("name", GPUS)
def test_every_vendors_devices_count(name: str) -> None:
    (message,) = messages(split(4, resources={"limits": {name: 2}}))
    assert message.startswith("spec.engine.tensorParallelSize: 4 needs 4 GPUs in each pod, and the engine asks for 2")
    assert f"({name}: 2)" in message
    assert "or lower tensorParallelSize" in message
    assert "Deployment" not in manifests(resource(split(4, resources={"limits": {name: 2}})))
    assert messages(split(2, resources={"limits": {name: "2"}})) == []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        split(1),
        split(4),  # CPUs, or a runtime class that shows all GPUs
        split(4, resources={"limits": {"cpu": "8", "example.com/fpga": 1}}),
        split(4, resources={"limits": {"nvidia.com/gpu": 4}}),
        split(4, resources={"limits": {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 2}}),
        split(2, resources={"claims": [{"name": "gpus"}], "limits": {"nvidia.com/gpu": 1}}, **{"podTemplate.spec": {
            "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two"}]}}),
        split(2, resources={"claims": [{"name": "gpus"}]}, **{"podTemplate.spec": {"resourceClaims": [
            {"name": "gpus", "resourceClaimTemplateName": "two-gpus"}]}}),
        {"resources": {"limits": {"nvidia.com/gpu": 0}}},
    ],
    ids=str,
)  # fmt: skip
def test_what_fits_or_cannot_be_known_is_legal(changes: dict[str, Any]) -> None:
    assert messages(changes) == []
    assert remarks(changes) == []


def test_the_templates_resources_count_too() -> None:
    template = {"containers": [{"name": "engine", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}
    changes = split(4, resources={"limits": {"nvidia.com/gpu": 4}}, **{"podTemplate.spec": template})
    assert "the engine asks for 2" in messages(changes)[0]
    sidecar = {"containers": [{"name": "metrics", "image": "m", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    assert "the engine asks for 1" in messages(
        split(2, resources={"limits": {"nvidia.com/gpu": 1}}, **{"podTemplate.spec": sidecar})
    )[0]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], 2),
        (["--prefill-context-parallel-size=2"], 4),
        (["--prefill_context_parallel_size", "3"], 6),
        (["--decode-context-parallel-size=2"], 2),
        (["--enable-expert-parallel"], 2),
    ],
)
def test_workers_are_those_that_vllm_starts(arguments: list[str], expected: int) -> None:
    assert needed(resource(split(2, **{"engine.extraArgs": arguments})).spec) == expected


def test_an_engine_over_nodes_needs_its_share_in_each() -> None:
    changes = split(8, **{"engine.nodes": 2})
    assert needed(resource(changes).spec) == 4
    found = resource({**changes, "resources": {"limits": {"nvidia.com/gpu": 2}}}).spec
    (problem,) = device_problems(found, {})
    assert "8 over 2 nodes needs 4 GPUs in each pod" in problem.message


def test_gpus_that_nobody_uses_are_a_remark() -> None:
    (remark,) = remarks(split(2, resources={"limits": {"nvidia.com/gpu": 8}}))
    assert remark == "8 GPUs are asked for (nvidia.com/gpu: 8) and 2 used: tensorParallelSize is 2"


@pytest.mark.parametrize(
    "resources",
    [{"requests": {"amd.com/gpu": 1}}, {"requests": {"amd.com/gpu": 1}, "limits": {"amd.com/gpu": 2}}],
)
def test_devices_are_asked_for_in_limits(resources: dict[str, Any]) -> None:
    assert any(
        m.startswith("spec.resources.requests.amd.com/gpu: devices are asked for in limits") for m in
        messages(split(2, resources=resources))
    )  # fmt: skip
