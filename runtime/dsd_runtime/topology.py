"""Which engines may change K while they run, whatever their method: by how they are spread, and by their model.

Part of the support table (`support_rows` has the methods). `resolved` asks at start, with what vLLM resolved; `owned`
refuses the same at admission, as far as a resource can tell; tools/generate_methods.py prints it.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Topology:
    """One kind of engine. `reason` is empty where K may change; `proof` and `gap` are as in `support_rows.Row`."""

    name: str
    source: str
    reason: str = ""
    admission: str = "nothing to refuse"
    proof: str = ""
    gap: str = ""


_TEST: Final = "tests/runtime/test_methods_topology.py"
_HONOURED: Final = "tests/runtime/test_methods_honoured.py"

MOE_DEADLOCK: Final = "ranks of a mixture-of-experts model with different K would deadlock"

PIPELINE_PARALLEL: Final = Topology(
    "pipeline parallel",
    "v1/core/sched/async_scheduler.py: AsyncScheduler._update_after_schedule (#52069, #52071, #57755)",
    "pipeline parallelism is not supported: equal outputs are not proven for it",
    "extraArgs refuse --pipeline-parallel-size",
    _TEST,
)
MOE_DATA_PARALLEL: Final = Topology(
    "data parallel, mixture of experts",
    "v1/engine/core.py: DPEngineCoreProc.run_busy_loop; config/vllm.py: "
    "VllmConfig._maybe_disable_dynamic_sd_for_data_parallel (#45963)",
    f"data parallelism of this model is not supported: {MOE_DEADLOCK}",
    "extraArgs refuse --data-parallel-size, dense or not: a resource does not say what its model is",
    _TEST,
)
DENSE_DATA_PARALLEL: Final = Topology(
    "data parallel, dense",
    "v1/engine/core.py: EngineCoreProc.run_engine_core (the ranks are independent engines)",
    admission="extraArgs refuse --data-parallel-size: one pod is one engine; `dsd-serve` alone may",
    proof="tests/runtime/test_data_parallel.py",
)
SEVERAL_NODES: Final = Topology(
    "tensor parallel over several nodes",
    "v1/executor/multiproc_executor.py: MultiprocExecutor (the scheduler is the leader's; workers get its output)",
    admission="engine.tensorParallelSize must be a multiple of engine.nodes; extraArgs refuse --nnodes",
    proof="tests/runtime/test_several_nodes.py",
)
HYBRID_ON_CPU: Final = Topology(
    "hybrid (recurrent) model, on a CPU",
    "model_executor/layers/mamba/short_conv.py and mamba_mixer2.py, as the CPU build runs them",
    "a hybrid (recurrent) model on a CPU is not supported: vLLM's outputs are wrong there with any speculation",
    "nothing: the model says what it is, not the resource",
    _TEST,
)
HYBRID_ON_GPU: Final = Topology(
    "hybrid (recurrent) model, on a GPU",
    "v1/worker/gpu_model_runner.py and v1/attention/backends/gdn_attn.py (#56531, #52942; fixed in 0.32)",
    gap="needs a GPU; try K=0 and compare outputs before you rely on it",
)
EXPERTS: Final = Topology(
    "mixture of experts, one rank", "no part of vLLM's choice of K looks at the model", proof=_HONOURED
)
TOPOLOGIES: Final = (
    EXPERTS,
    HYBRID_ON_CPU,
    HYBRID_ON_GPU,
    SEVERAL_NODES,
    DENSE_DATA_PARALLEL,
    MOE_DATA_PARALLEL,
    PIPELINE_PARALLEL,
)


def refusal(
    pipeline_parallel_size: int, data_parallel_size: int, *, mixture_of_experts: bool, hybrid_on_cpu: bool
) -> str | None:
    """Why K must not change in an engine of this kind; None when it may."""
    if pipeline_parallel_size > 1:
        return PIPELINE_PARALLEL.reason
    if data_parallel_size > 1 and mixture_of_experts:
        return MOE_DATA_PARALLEL.reason
    return HYBRID_ON_CPU.reason if hybrid_on_cpu else None
