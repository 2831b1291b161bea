"""Manifests of the test bed: tiny engines by method, the volume with the models, the engine without speculation.

Requests are tiny so that many engines fit on one small node; `float32` and eager mode make outputs comparable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsd_runtime.schedule import ScheduleRange
from tools.testbed.engine import ENGINE_PORT, MODEL_NAME
from tools.testbed.kube import API_VERSIONS, Json

MODELS_MOUNT: Final = "/models"
MAX_NUM_SEQS: Final = 16
MAX_TOKENS: Final = 4
"""Largest K of every engine here."""

_MAX_MODEL_LEN: Final = 512
# Several engines share the cores, and threads and processes that wait for each other spin: one thread per engine (the
# n-gram drafter has a pool of its own, numba's), and vLLM's worker inside the engine core, where a single GPU has it
# (that is what VLLM_ENABLE_V1_MULTIPROCESSING=0 changes on a CPU; the core stays a process). It also starts faster.
_ENV: Final = [
    {"name": "HF_HUB_OFFLINE", "value": "1"},
    {"name": "NUMBA_NUM_THREADS", "value": "1"},
    {"name": "OMP_NUM_THREADS", "value": "1"},
    {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "1"},
    {"name": "VLLM_CPU_OMP_THREADS_BIND", "value": "nobind"},
    {"name": "VLLM_ENABLE_V1_MULTIPROCESSING", "value": "0"},
]
_RESOURCES: Final = {"requests": {"cpu": "20m", "memory": "256Mi"}}
_CLAIM: Final = "models"


@dataclass(frozen=True)
class Drafter:
    """A method and the directory of its draft model under the volume's root (None: it needs none)."""

    method: str
    model: str | None = None

    def spec(self) -> Json:
        """The `drafter` of a DSDDeployment."""
        spec: Json = {"method": self.method, "numSpeculativeTokens": MAX_TOKENS}
        if self.model is None:
            return spec | {"promptLookup": {"min": 2, "max": 4}}
        return spec | {"model": f"{MODELS_MOUNT}/{self.model}"}


def ranges_of(schedule: Sequence[ScheduleRange]) -> list[Json]:
    """A schedule as the resource spells it."""
    return [r.model_dump(by_alias=True) for r in schedule]


def namespace(name: str) -> Json:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def volume_name(target_namespace: str) -> str:
    """The volume of a namespace's models; volumes are cluster-scoped."""
    return f"{target_namespace}-models"


def model_volume(target_namespace: str, directory: str, claim: str = _CLAIM) -> list[Json]:
    """A read-only volume over a directory of the node, and the claim bound to it."""
    volume = volume_name(target_namespace)
    common = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **common,
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": directory, "type": "Directory"},
                "claimRef": {"namespace": target_namespace, "name": claim},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": target_namespace},
            "spec": {**common, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
        },
    ]


def _pod_spec(container: Json) -> Json:
    mount = {"name": "models", "mountPath": MODELS_MOUNT, "readOnly": True}
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": _CLAIM, "readOnly": True}}
    return {
        "volumes": [volume],
        "terminationGracePeriodSeconds": 10,
        "containers": [{"name": "engine", "volumeMounts": [mount], **container}],
    }


def dsd_deployment(
    target_namespace: str,
    name: str,
    target: str,
    drafter: Drafter,
    schedule: Sequence[ScheduleRange],
    replicas: int = 1,
) -> Json:
    """A DSDDeployment of tiny models."""
    return {
        "apiVersion": API_VERSIONS["DSDDeployment"],
        "kind": "DSDDeployment",
        "metadata": {"name": name, "namespace": target_namespace},
        "spec": {
            "model": {"name": f"{MODELS_MOUNT}/{target}", "servedNames": [MODEL_NAME]},
            "drafter": drafter.spec(),
            "schedule": ranges_of(schedule),
            "engine": {
                "modelRunner": "V1",
                "dtype": "float32",
                "maxNumSeqs": MAX_NUM_SEQS,
                "maxModelLen": _MAX_MODEL_LEN,
                "extraArgs": ["--enforce-eager"],
                "env": _ENV,
            },
            "replicas": replicas,
            "resources": _RESOURCES,
            "podTemplate": {"spec": _pod_spec({})},
        },
    }


def reference_pod(target_namespace: str, name: str, target: str, image: str) -> Json:
    """Plain `vllm serve` of the same image and target: no plugin, no speculation, the oracle for greedy output."""
    command = ["vllm", "serve", f"{MODELS_MOUNT}/{target}", "--served-model-name", MODEL_NAME]
    options = {
        "--dtype": "float32",
        "--max-num-seqs": str(MAX_NUM_SEQS),
        "--max-model-len": str(_MAX_MODEL_LEN),
        "--port": str(ENGINE_PORT),
    }
    writable = {"HOME": "/scratch", "XDG_CACHE_HOME": "/scratch/cache", "VLLM_CACHE_ROOT": "/scratch/vllm"}
    env: list[dict[str, Any]] = [*_ENV, *({"name": k, "value": v} for k, v in writable.items())]
    spec = _pod_spec(
        {
            "image": image,
            "command": [*command, "--enforce-eager", *(word for option in options.items() for word in option)],
            "env": [*env, {"name": "VLLM_PLUGINS", "value": ""}],
            "resources": _RESOURCES,
            "readinessProbe": {"httpGet": {"path": "/health", "port": ENGINE_PORT}, "periodSeconds": 2},
        }
    )
    # vLLM's processes talk through /dev/shm and need more than the 64 MiB that a container gets by default.
    spec["volumes"] += [{"name": "scratch", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}]
    mounts = spec["containers"][0]["volumeMounts"]
    mounts += [{"name": "scratch", "mountPath": "/scratch"}, {"name": "shm", "mountPath": "/dev/shm"}]
    spec["enableServiceLinks"] = False
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": target_namespace},
        "spec": spec,
    }
