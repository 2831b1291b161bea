"""production-stack: its VLLMRuntime, and the values of its Helm chart, as the pods that they make.

What the fields mean is taken from its controller (`deploymentForVLLMRuntime`) and its chart
(`deployment-vllm-multi.yaml`).
"""

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dsd.convert.forms import unread
from kubectl_dsd.convert.forms.loose import mapping, mappings, name, scalar, words
from kubectl_dsd.convert.forms.pods import PodReader
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.redactor import PLACEHOLDER
from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.variables import Variables

Json = Mapping[str, Any]

_OPTIONS: Final = {
    "maxModelLen": "--max-model-len",
    "dtype": "--dtype",
    "tensorParallelSize": "--tensor-parallel-size",
    "maxNumSeqs": "--max-num-seqs",
    "gpuMemoryUtilization": "--gpu-memory-utilization",
    "maxLoras": "--max-loras",
}
_TEMPLATE: Final = "the chat template is not carried over; mount its ConfigMap by podTemplate, and add --chat-template"
_LMCACHE: Final = "LMCache is not in the operator's image; build one with it, and add --kv-transfer-config to extraArgs"


def read_runtime(body: Json, variables: Variables, _: str | None) -> Launch | None:
    """A VLLMRuntime."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    model, config = mapping(spec.get("model")), mapping(spec.get("vllmConfig"))
    deployment = mapping(spec.get("deploymentConfig"))
    launch = Launch("kubernetes", [], name=name(metadata.get("name")), namespace=name(metadata.get("namespace")))
    launch.replicas = _count(deployment.get("replicas"))
    arguments = [str(model.get("modelURL", "")), *_switches(model), *_caching(config, chunked=True)]
    arguments += [*_options({**model, **config}), *words(config.get("extraArgs"))]
    env = [e if e.get("valueFrom") else {**e, "value": scalar(e.get("value"))} for e in mappings(config.get("env"))]
    container = {
        "name": "vllm", "image": _image(mapping(deployment.get("image"))), "args": [a for a in arguments if a],
        "env": [*env, *_token(mapping(model.get("hfTokenSecret")), "hfTokenSecretName", "hfTokenKeyName")],
        "resources": _resources(mapping(deployment.get("resources"))),
        "imagePullPolicy": mapping(deployment.get("image")).get("pullPolicy"),
    }  # fmt: skip
    pod: dict[str, Any] = {"containers": [container], "tolerations": deployment.get("toleration")}
    pod["runtimeClassName"] = deployment.get("runtimeClass")
    if secret := mapping(deployment.get("image")).get("pullSecretName"):
        pod["imagePullSecrets"] = [{"name": secret}]
    if terms := deployment.get("nodeSelectorTerms"):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod["affinity"] = {"nodeAffinity": required}
    _storage(mapping(spec.get("storageConfig")), str(metadata.get("name")), container, pod)
    _lost_of_runtime(spec, model, deployment, variables.report)
    return PodReader(launch, variables).read({"spec": pod}, None)


def read_values(model: Json, serving: Json, variables: Variables) -> Launch | None:
    """One entry of `servingEngineSpec.modelSpec` in the values of the chart."""
    report = variables.report
    config = mapping(model.get("vllmConfig"))
    launch = Launch("helm", [], name=name(model.get("name")), replicas=_count(model.get("replicaCount")))
    arguments = [
        str(model.get("modelURL", "")),
        *_switches(model),
        *_caching(config, chunked="enableChunkedPrefill" in config),
    ]
    arguments += [*_options(config), *words(config.get("extraArgs"))]
    resources = model.get("resources") or _chart_resources(model)
    image = f"{model.get('repository', '')}:{model.get('tag', '')}".strip(":")
    env = [*_chart_secret("HF_TOKEN", model.get("hf_token")), *_chart_secret("VLLM_API_KEY", serving.get("vllmApiKey"))]
    container = {"name": "vllm", "image": image or None, "args": [a for a in arguments if a], "resources": resources}
    container["env"] = [*env, *mappings(model.get("env"))]
    if source := mapping(model.get("envFromSecret")).get("name"):
        container["envFrom"] = [{"secretRef": {"name": source}}]
    pod: dict[str, Any] = {"containers": [container], "tolerations": serving.get("tolerations")}
    pod |= {key: model[key] for key in ("priorityClassName", "serviceAccountName") if model.get(key)}
    pod["runtimeClassName"] = serving.get("runtimeClassName")
    if model.get("chatTemplate"):
        report.lose("chatTemplate", _TEMPLATE)
    if mapping(model.get("lmcacheConfig")).get("enabled"):
        report.lose("lmcacheConfig", _LMCACHE)
    if model.get("raySpec"):
        report.problem("raySpec", "one pod is one engine: Ray is not supported; use spec.replicas")
    unread.tell(model, _MODEL_OF_CHART, "modelSpec", report)
    unread.tell(config, (*_CONFIG, *_OPTIONS), "vllmConfig", report)
    unread.tell(serving, _SERVING_OF_CHART, "servingEngineSpec", report)
    return PodReader(launch, variables).read({"spec": pod}, None)


_SWITCHES: Final = ("enableLoRA", "enableTool", "toolCallParser")
_CONFIG: Final = ("enablePrefixCaching", "enableChunkedPrefill", "extraArgs", "v0", "v1", "port", "env")
"""`v0` and `v1` name vLLM's engine, of which there is one now; the operator decides the port."""

_MODEL_OF_CHART: Final = (
    *("name", "repository", "tag", "modelURL", "replicaCount", "vllmConfig", "resources", "env", "envFromSecret"),
    *("requestCPU", "requestMemory", "requestGPU", "requestGPUType", "limitCPU", "limitMemory", "hf_token"),
    *("priorityClassName", "serviceAccountName", "chatTemplate", "lmcacheConfig", "raySpec", *_SWITCHES),
)
_SERVING_OF_CHART: Final = (
    *("modelSpec", "vllmApiKey", "tolerations", "runtimeClassName", "enableEngine", "containerPort", "servicePort"),
    *("startupProbe", "livenessProbe", "readinessProbe", "labels"),
)
"""Ports, probes and the labels by which the chart finds its pods are the operator's own."""

_SPEC_OF_RUNTIME: Final = (
    *("model", "vllmConfig", "deploymentConfig", "storageConfig", "lmCacheConfig", "autoscalingConfig"),
)
_DEPLOYMENT_OF_RUNTIME: Final = (
    *("replicas", "resources", "image", "toleration", "runtimeClass", "nodeSelectorTerms", "sidecarConfig"),
)
_CLAIM: Final = ("enabled", "mountPath", "volumeName", "size", "accessMode", "storageClassName", "pvcName")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _switches(model: Json) -> list[str]:
    found = ["--enable-lora"] if model.get("enableLoRA") else []
    found += ["--enable-auto-tool-choice"] if model.get("enableTool") else []
    return [*found, *(["--tool-call-parser", str(model["toolCallParser"])] if model.get("toolCallParser") else [])]


def _caching(config: Json, *, chunked: bool) -> list[str]:
    """Both switches are passed in either direction: one that is not set means off there."""
    names = {"enable-prefix-caching": config.get("enablePrefixCaching")}
    names |= {"enable-chunked-prefill": config.get("enableChunkedPrefill")} if chunked else {}
    return [f"--{'' if on else 'no-'}{name}" for name, on in names.items()]


def _options(config: Json) -> list[str]:
    """Options with a value; zero and nothing count as not set."""
    return [word for key, option in _OPTIONS.items() if config.get(key) for word in (option, str(config[key]))]


def _image(image: Json) -> str | None:
    return f"{image.get('registry', '')}/{image['name']}".lstrip("/") if image.get("name") else None


def _resources(amounts: Json) -> dict[str, Any]:
    """Requests and limits are the same there."""
    found = {name: str(amounts[name]) for name in ("cpu", "memory") if amounts.get(name)}
    if amounts.get("gpu"):
        found[str(amounts.get("gpuType") or "nvidia.com/gpu")] = str(amounts["gpu"])
    return {"requests": found, "limits": dict(found)} if found else {}


def _chart_resources(model: Json) -> dict[str, Any]:
    gpu = {str(model.get("requestGPUType") or "nvidia.com/gpu"): model["requestGPU"]} if model.get("requestGPU") else {}
    requests = {n: str(model[k]) for n, k in (("cpu", "requestCPU"), ("memory", "requestMemory")) if model.get(k)} | gpu
    limits = {n: str(model[k]) for n, k in (("cpu", "limitCPU"), ("memory", "limitMemory")) if model.get(k)} | gpu
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def _token(secret: Json, of_name: str, of_key: str) -> list[dict[str, Any]]:
    if not secret.get(of_name):
        return []
    return [
        {
            "name": "HF_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": secret[of_name], "key": secret.get(of_key) or "token"}},
        }
    ]


def _chart_secret(variable: str, value: Any) -> list[dict[str, Any]]:
    """A secret of the values: its text, which becomes a Secret of ours, or the name of one."""
    if isinstance(value, Mapping):
        return [
            {
                "name": variable,
                "valueFrom": {"secretKeyRef": {"name": value.get("secretName"), "key": value.get("secretKey")}},
            }
        ]
    return [{"name": variable, "value": str(value) or PLACEHOLDER}] if value else []


def _storage(storage: Json, claim: str, container: dict[str, Any], pod: dict[str, Any]) -> None:
    if storage.get("enabled"):
        name = storage.get("volumeName") or "pvc-storage"
        container["volumeMounts"] = [{"name": name, "mountPath": storage.get("mountPath") or "/data"}]
        pod["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": claim}}]


def _lost_of_runtime(spec: Json, model: Json, deployment: Json, report: Report) -> None:
    unread.tell(spec, _SPEC_OF_RUNTIME, "spec", report)
    unread.tell(model, ("modelURL", "hfTokenSecret", "chatTemplate", *_SWITCHES, *_OPTIONS), "model", report)
    unread.tell(mapping(spec.get("vllmConfig")), (*_CONFIG, *_OPTIONS), "vllmConfig", report)
    unread.tell(deployment, _DEPLOYMENT_OF_RUNTIME, "deploymentConfig", report)
    image, amounts = mapping(deployment.get("image")), mapping(deployment.get("resources"))
    unread.tell(image, ("registry", "name", "pullPolicy", "pullSecretName"), "deploymentConfig.image", report)
    unread.tell(amounts, ("cpu", "memory", "gpu", "gpuType"), "deploymentConfig.resources", report)
    if mapping(spec.get("storageConfig")).get("enabled"):
        unread.tell(mapping(spec.get("storageConfig")), _CLAIM, "storageConfig", report)
    if mapping(spec.get("storageConfig")).get("enabled"):
        report.note(
            "storageConfig",
            "the claim belongs to the VLLMRuntime and goes with it; take it over before you delete that",
        )
    if model.get("chatTemplate"):
        report.lose("model.chatTemplate", _TEMPLATE)
    if mapping(spec.get("lmCacheConfig")).get("enabled"):
        report.lose("lmCacheConfig", _LMCACHE)
    if mapping(spec.get("autoscalingConfig")).get("enabled"):
        report.lose(
            "autoscalingConfig", "point a KEDA ScaledObject at the DSDDeployment, which has a scale subresource"
        )
    if mapping(deployment.get("sidecarConfig")).get("enabled"):
        report.lose("deploymentConfig.sidecarConfig", "the sidecar is not carried over; add it to spec.podTemplate")
