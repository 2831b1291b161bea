"""Kubernetes manifests: workloads, VLLMRuntime, LLMInferenceService, Helm values."""

import json
from typing import Any

import pytest
import yaml

from dsd_operator.api import parse
from dsd_operator.render.context import RenderContext
from dsd_operator.render.plan import plan
from dsd_operator.render.revision import owner_of
from dsd_runtime.protocol import Revision, TokenReviewAuth
from tests.unit.convert.converted import NGRAM, Outcome, text

SPECULATIVE = ["--speculative-config", NGRAM]
COMPACT = NGRAM.replace(" ", "")
DEPLOYMENT = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: llama, namespace: models, annotations: {{deployment.kubernetes.io/revision: "3"}}}}
spec:
  replicas: 3
  strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}
  selector: {{matchLabels: {{app: llama}}}}
  template:
    metadata: {{labels: {{app: llama}}}}
    spec:
      nodeSelector: {{gpu: h100}}
      tolerations: [{{key: nvidia.com/gpu, operator: Exists}}]
      imagePullSecrets: [{{name: regcred}}]
      containers:
      - name: log
        image: busybox
        env: [{{name: SINK_PASSWORD, value: s3cr3t-s3cr3t}}]
      - name: server
        image: vllm/vllm-openai:v0.32.0
        command: [vllm, serve]
        args:
        - acme/t
        - --max-num-seqs=64
        - --served-model-name
        - $(SERVED)
        - --api-key=$(KEY)
        - --speculative-config
        - '{NGRAM}'
        - --port
        - "8080"
        env:
        - {{name: SERVED, value: llama}}
        - {{name: KEY, valueFrom: {{secretKeyRef: {{name: keys, key: api}}}}}}
        - {{name: HF_TOKEN, valueFrom: {{secretKeyRef: {{name: hub, key: token}}}}}}
        - {{name: HF_HOME, value: /models}}
        ports: [{{containerPort: 8080}}]
        resources: {{limits: {{nvidia.com/gpu: 1, memory: 64Gi}}, requests: {{cpu: "8"}}}}
        startupProbe: {{httpGet: {{path: /health, port: 8080}}, periodSeconds: 10, failureThreshold: 720}}
        livenessProbe: {{httpGet: {{path: /health, port: 8080}}}}
        volumeMounts:
        - {{name: shm, mountPath: /dev/shm}}
        - {{name: models, mountPath: /models}}
      volumes:
      - {{name: shm, emptyDir: {{medium: Memory, sizeLimit: 8Gi}}}}
      - {{name: models, persistentVolumeClaim: {{claimName: models}}}}
"""


def pod_of(found: Outcome) -> dict[str, Any]:
    """The pod spec that the operator renders."""
    body = {**found.resource, "metadata": {"namespace": "d", "uid": "u", "generation": 1, **found.resource["metadata"]}}
    resource = parse(body)
    auth = TokenReviewAuth(issuer="https://i", audience="dsd-operator.io/d/x", subject="s", jwks={"keys": []})
    manifests = plan(resource, RenderContext("image", Revision(owner=owner_of(resource), number=1), auth))
    (deployment,) = [m for m in manifests if m["kind"] == "Deployment"]
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def test_a_deployment() -> None:
    found = text(DEPLOYMENT)
    assert "read as a Kubernetes manifest" in found.stderr
    assert found.resource["metadata"] == {"name": "llama", "namespace": "models"}
    spec = found.spec
    token = {"name": "hub", "key": "token"}
    assert spec["model"] == {"name": "acme/t", "servedNames": ["llama"], "tokenSecretRef": token}
    assert spec["engine"]["maxNumSeqs"] == 64
    assert [e["name"] for e in spec["engine"]["env"]] == ["SERVED", "KEY", "HF_HOME", "VLLM_API_KEY"]
    assert spec["engine"]["env"][-1]["valueFrom"] == {"secretKeyRef": {"name": "keys", "key": "api"}}
    assert (spec["replicas"], spec["rollout"]) == (3, {"maxSurge": 1, "maxUnavailable": 0})
    assert spec["resources"] == {"limits": {"nvidia.com/gpu": 1, "memory": "64Gi"}, "requests": {"cpu": "8"}}
    assert (spec["sharedMemory"], spec["startup"]) == ({"sizeLimit": "8Gi"}, {"timeoutSeconds": 7200})
    assert spec["podTemplate"]["metadata"] == {"labels": {"app": "llama"}}
    assert found.lost == []
    assert found.noted("metadata.name", "remove it first", "--name")
    assert "s3cr3t" not in found.stdout + found.stderr
    assert found.secrets == [
        'kubectl create secret generic llama-env --namespace models --from-literal=SINK_PASSWORD="$SINK_PASSWORD"'
    ]


def test_the_time_to_drain_and_a_grace_period_that_cuts_it() -> None:
    pod = DEPLOYMENT.replace("- --port\n", "- --shutdown-timeout=50\n        - --port\n")
    found = text(pod.replace("nodeSelector:", "terminationGracePeriodSeconds: 60\n      nodeSelector:"))
    assert found.spec["rollout"] == {"maxSurge": 1, "maxUnavailable": 0, "drainTimeoutSeconds": 50}
    assert found.noted("terminationGracePeriodSeconds", "leave it out for the 85 s", "drainTimeoutSeconds 50")
    found = text(pod.replace("nodeSelector:", "terminationGracePeriodSeconds: 85\n      nodeSelector:"))
    assert not found.noted("terminationGracePeriodSeconds")


def test_the_pod_around_the_engine_is_the_same() -> None:
    pod = pod_of(text(DEPLOYMENT))
    engine = next(c for c in pod["containers"] if c["name"] == "engine")
    assert {"name": "models", "mountPath": "/models"} in engine["volumeMounts"]
    assert {"name": "models", "persistentVolumeClaim": {"claimName": "models"}} in pod["volumes"]
    assert (pod["nodeSelector"], pod["imagePullSecrets"]) == ({"gpu": "h100"}, [{"name": "regcred"}])
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert [c["name"] for c in pod["containers"]] == ["engine", "log"]
    assert not [v for v in pod["volumes"] if v["name"] == "shm"]


def container(**fields: Any) -> str:
    """A Deployment with one container."""
    one = {"name": "main", "image": "vllm/vllm-openai:v0.32.0", **fields}
    spec = {"template": {"spec": {"containers": [one]}}}
    return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec})


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ([], ["acme/t", *SPECULATIVE]),
        ([], ["--model", "acme/t", *SPECULATIVE]),
        (["vllm"], ["serve", "acme/t", *SPECULATIVE]),
        (["python3", "-m", "vllm.entrypoints.openai.api_server"], ["--model=acme/t", *SPECULATIVE]),
        (["/bin/sh", "-c"], [f"exec vllm serve acme/t --speculative-config '{NGRAM}'"]),
        (["/bin/bash", "-euc", f"sleep 1; vllm serve acme/t -sc '{NGRAM}' | tee log"], []),
        ([], ["--model acme/t", f"--speculative-config '{NGRAM}'"]),
        (["/opt/venv/bin/vllm", "serve", "acme/t"], SPECULATIVE),
    ],
)
def test_forms_of_a_command(command: list[str], args: list[str]) -> None:
    found = text(container(command=command, args=args))
    assert found.spec["model"] == {"name": "acme/t"}
    assert found.spec["drafter"] == {"method": "ngram", "numSpeculativeTokens": 3}
    assert found.lost == []


def test_references_in_a_shell() -> None:
    args = [f"vllm serve $MODEL --speculative-config '{NGRAM}' --seed ${{SEED}}"]
    found = text(container(command=["sh", "-c"], args=args, env=[{"name": "MODEL", "value": "acme/t"}]))
    assert "--set SEED=VALUE" in found.stderr
    env = [{"name": "MODEL", "value": "acme/t"}, {"name": "SEED", "value": "1"}]
    assert text(container(command=["sh", "-c"], args=args, env=env)).spec["engine"]["extraArgs"] == ["--seed=1"]


def test_a_reference_that_only_the_pod_knows() -> None:
    env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    found = text(container(args=["acme/t", *SPECULATIVE, "--tool-server", "$(POD_IP)"], env=env))
    assert found.code == 2
    assert "--set POD_IP=VALUE" in found.stderr


def test_escaped_references_stay_literal() -> None:
    found = text(container(args=["acme/t", *SPECULATIVE, "--chat-template", "$$(X) $(NOBODY)"]))
    assert found.spec["engine"]["extraArgs"] == ["--chat-template=$(X) $(NOBODY)"]


def test_a_pod_as_the_api_server_shows_it() -> None:
    pod = yaml.safe_load(container(args=["acme/t", *SPECULATIVE]))["spec"]["template"]
    mount = {"name": "kube-api-access-x", "mountPath": "/var/run/secrets"}
    pod["spec"]["containers"][0]["volumeMounts"] = [mount]
    pod["spec"] |= {"nodeName": "n1", "priority": 0, "volumes": [{"name": "kube-api-access-x", "projected": {}}]}
    pod["spec"]["tolerations"] = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    pod |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"pod-template-hash": "1"}}}
    found = text(yaml.safe_dump(pod))
    assert "podTemplate" not in found.spec
    assert "replicas" not in found.spec


def test_lists_and_several_documents() -> None:
    one = container(args=["acme/t", *SPECULATIVE])
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
    assert text(f"{service}---\n{one}").spec["model"]["name"] == "acme/t"
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(one)]})
    assert text(listed).spec["model"]["name"] == "acme/t"
    assert "which one runs vLLM?" in text(f"{one}---\n{one.replace('name: x', 'name: y')}").stderr
    both = f"{one}---\n{one.replace('name: x', 'name: y')}"
    assert text(both, "--select", "y").resource["metadata"]["name"] == "y"


@pytest.mark.parametrize("kind", ["LeaderWorkerSet", "RayService", "DSDDeployment", "ConfigMap"])
def test_kinds_that_are_refused(kind: str) -> None:
    found = text(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n")
    assert found.code == 2
    assert kind in found.stderr


RUNTIME = f"""
apiVersion: production-stack.vllm.ai/v1alpha1
kind: VLLMRuntime
metadata: {{name: llama}}
spec:
  model:
    modelURL: acme/t
    enableLoRA: false
    maxModelLen: 4096
    dtype: bfloat16
    maxNumSeqs: 32
    hfTokenSecret: {{hfTokenSecretName: hub, hfTokenKeyName: token}}
  vllmConfig:
    enableChunkedPrefill: true
    tensorParallelSize: 2
    gpuMemoryUtilization: "0.8"
    extraArgs: ["--speculative-config", '{NGRAM}', "--disable-log-requests"]
    v1: true
    port: 8000
    env: [{{name: LOG, value: x}}]
  storageConfig: {{enabled: true, mountPath: /data}}
  lmCacheConfig: {{enabled: true}}
  deploymentConfig:
    replicas: 2
    resources: {{cpu: "10", memory: 32Gi, gpu: "2"}}
    image: {{registry: docker.io, name: "vllm/vllm-openai:v0.32.0", pullPolicy: Always, pullSecretName: reg}}
"""


def test_a_vllm_runtime() -> None:
    found = text(RUNTIME)
    spec = found.spec
    assert spec["model"] == {"name": "acme/t", "tokenSecretRef": {"name": "hub", "key": "token"}}
    assert spec["engine"] == {
        "imagePullPolicy": "Always",
        "maxNumSeqs": 32,
        "maxModelLen": 4096,
        "dtype": "bfloat16",
        "tensorParallelSize": 2,
        "gpuMemoryUtilization": 0.8,
        "extraArgs": ["--no-enable-prefix-caching", "--enable-chunked-prefill"],
        "env": [{"name": "LOG", "value": "x"}],
    }
    amounts = {"cpu": "10", "memory": "32Gi", "nvidia.com/gpu": "2"}
    assert (spec["replicas"], spec["resources"]) == (2, {"requests": amounts, "limits": amounts})
    assert pod_of(found)["volumes"][-1] == {"name": "pvc-storage", "persistentVolumeClaim": {"claimName": "llama"}}
    assert [lost.partition(":")[0] for lost in found.lost] == ["lmCacheConfig"]


SERVICE = f"""
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {{name: llama, namespace: models}}
spec:
  model: {{uri: "hf://acme/t", name: acme/served}}
  replicas: 2
  parallelism: {{tensor: 2}}
  template:
    containers:
    - name: main
      env:
      - name: VLLM_ADDITIONAL_ARGS
        value: --max-model-len=32768 --speculative-config '{COMPACT}'
      resources: {{limits: {{nvidia.com/gpu: "2"}}}}
"""


def test_an_llm_inference_service() -> None:
    found = text(SERVICE)
    assert found.spec["model"] == {"name": "acme/t", "servedNames": ["acme/served"]}
    assert found.spec["engine"] == {"maxModelLen": 32768, "tensorParallelSize": 2}
    assert found.spec["drafter"] == {"method": "ngram", "numSpeculativeTokens": 3}
    assert (found.spec["replicas"], found.lost) == (2, [])
    assert found.noted("model", "hf://")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("replicas: 2", "prefill: {replicas: 1}", "spec.prefill"),
        ("replicas: 2", "worker: {containers: []}", "spec.worker"),
        ("{tensor: 2}", "{tensor: 2, data: 4}", "spec.parallelism.data"),
        ("hf://acme/t", "pvc://claim/t", "podTemplate"),
    ],
)
def test_services_of_several_pods_or_claims_are_refused(old: str, new: str, words: str) -> None:
    found = text(SERVICE.replace(old, new))
    assert found.code == 2
    assert words in found.stderr


def test_what_a_service_has_beside_the_engine_is_told() -> None:
    assert text(SERVICE.replace("replicas: 2", "baseRefs: [{name: x}]")).missed("spec.baseRefs")
    assert text(SERVICE.replace("replicas: 2", "router: {route: {}}")).missed("spec.router")


VALUES = f"""
servingEngineSpec:
  vllmApiKey: s3cr3t-s3cr3t
  modelSpec:
  - name: llama
    repository: vllm/vllm-openai
    tag: v0.32.0
    modelURL: acme/t
    replicaCount: 2
    requestCPU: 8
    requestMemory: 16Gi
    requestGPU: 1
    hf_token: hf_yyyyyyyyyyyy
    vllmConfig: {{maxModelLen: 4096, maxNumSeqs: 16, extraArgs: ["--speculative-config", '{NGRAM}']}}
"""


def test_values_of_the_production_stack() -> None:
    found = text(VALUES)
    assert "read as values of a Helm chart" in found.stderr
    assert found.resource["metadata"]["name"] == "llama"
    assert found.spec["engine"]["extraArgs"] == ["--no-enable-prefix-caching"]
    assert (found.spec["engine"]["maxNumSeqs"], found.spec["replicas"]) == (16, 2)
    assert found.spec["resources"]["requests"] == {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": 1}
    assert found.spec["model"]["tokenSecretRef"] == {"name": "llama-hf-token", "key": "token"}
    assert "s3cr3t" not in found.stdout + found.stderr
    assert "yyyy" not in found.stdout + found.stderr


@pytest.mark.parametrize(
    "content",
    [
        f"vllm:\n  args:\n  - --model acme/t\n  - --speculative-config '{COMPACT}'\n",
        f"models:\n- model: acme/t\n  extraArgs: ['--speculative-config={NGRAM}']\n",
        f"decode:\n  containers:\n  - command: [vllm, serve]\n    args: [acme/t, -sc, '{NGRAM}', --seed, 0]\n",
    ],
)
def test_any_values_that_hold_a_command(content: str) -> None:
    found = text(content)
    assert found.spec["model"]["name"] == "acme/t"
    assert found.spec["drafter"]["method"] == "ngram"
    assert found.noted("what the chart itself adds is not known")
