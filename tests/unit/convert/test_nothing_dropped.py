"""What an input says and the resource does not is told, and no form stumbles over the words of another."""

import pytest

from kubectl_dsd.convert.inputs import FORMS
from tests.unit.convert import test_compose, test_kubernetes
from tests.unit.convert.converted import NGRAM, run, text
from tests.unit.convert.test_docker import LINE

SERVICE = "services: {v: {image: 'vllm/vllm-openai:v0.32.0', command: [acme/t, -sc, '@NGRAM'], @MORE}}"


def compose(more: str) -> str:
    return SERVICE.replace("@NGRAM", NGRAM).replace("@MORE", more)


def test_resources_of_a_service_are_carried_over() -> None:
    amounts = "limits: {memory: 64g, cpus: '8'}, reservations: {memory: 32g, devices: [{count: 2, driver: nvidia}]}"
    found = text(compose(f"deploy: {{resources: {{{amounts}}}}}"))
    limits = {"memory": "64Gi", "cpu": "8", "nvidia.com/gpu": 2}
    assert found.spec["resources"] == {"limits": limits, "requests": {"memory": "32Gi"}}
    assert found.lost == []


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ("deploy: {placement: {constraints: [a]}}", "deploy.placement"),
        ("deploy: {mode: global}", "deploy.mode"),
        ("deploy: {resources: {limits: {pids: 5}}}", "deploy.resources.limits.pids"),
        ("deploy: {resources: {reservations: {generic_resources: [1]}}}", "reservations.generic_resources"),
        ("deploy: {resources: {reservations: {devices: [{driver: amd, capabilities: [gpu]}]}}}", "driver amd"),
        ("build: .", "build ."),
        ("build: {context: src}", "build src"),
    ],
)
def test_what_a_service_loses_is_told(more: str, lost: str) -> None:
    assert text(compose(more)).missed(lost)


def test_a_service_that_is_only_built() -> None:
    content = compose("build: .").replace("image: 'vllm/vllm-openai:v0.32.0', ", "")
    assert text(content).missed("image", "build .", "--image")
    assert text(content, "--image", "registry.example/own:1").lost == []


def test_values_of_a_chart_are_handed_on() -> None:
    found = text(
        f"""
vllm:
  args: [acme/t, --speculative-config, '{NGRAM}']
  image: {{registry: registry.example, repository: own/vllm, tag: "1", pullPolicy: Always}}
  env: {{NCCL_DEBUG: INFO}}
  nodeSelector: {{gpu: h100}}
  tolerations: [{{key: nvidia.com/gpu, operator: Exists}}]
  volumes: [{{name: models, persistentVolumeClaim: {{claimName: models}}}}]
  volumeMounts: [{{name: models, mountPath: /models}}]
  autoscaling: {{enabled: true}}
"""
    )
    pod = found.spec["podTemplate"]["spec"]
    assert pod["nodeSelector"] == {"gpu": "h100"}
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert pod["volumes"] == [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "models", "mountPath": "/models"}]
    assert found.spec["engine"]["env"] == [{"name": "NCCL_DEBUG", "value": "INFO"}]
    assert found.spec["engine"]["imagePullPolicy"] == "Always"
    assert [lost.partition(":")[0] for lost in found.lost] == ["autoscaling", "image"]
    assert found.missed("image", "registry.example/own/vllm:1")


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("lmCacheConfig: {enabled: true}", "sidecars: [x]", "spec.sidecars"),
        ("enableLoRA: false", "foo: 1", "model.foo"),
        ("v1: true", "foo: 1", "vllmConfig.foo"),
        ("replicas: 2", "foo: 1", "deploymentConfig.foo"),
        ('gpu: "2"', "foo: 1", "deploymentConfig.resources.foo"),
        ("pullPolicy: Always", "foo: 1", "deploymentConfig.image.foo"),
        ("mountPath: /data", "foo: 1", "storageConfig.foo"),
    ],
)
def test_unread_keys_of_a_runtime(old: str, new: str, lost: str) -> None:
    assert text(test_kubernetes.RUNTIME.replace(old, new)).missed(lost)


def test_unread_keys_of_the_charts_values() -> None:
    found = text(
        test_kubernetes.VALUES.replace("requestCPU: 8", "shmSize: 8Gi")
        .replace("vllmConfig: {", "vllmConfig: {foo: 1, ")
        .replace("  vllmApiKey", "  schedulerName: x\n  vllmApiKey")
        + "routerSpec: {enableRouter: true}\n"
    )
    for lost in ("modelSpec.shmSize", "vllmConfig.foo", "servingEngineSpec.schedulerName"):
        assert found.missed(lost)
    assert found.noted("routerSpec")


def test_unread_keys_of_a_service_of_kserve() -> None:
    assert text(test_kubernetes.SERVICE.replace("replicas: 2", "scaling: {minReplicas: 1}")).missed("spec.scaling")
    assert text(test_kubernetes.SERVICE.replace("{tensor: 2}", "{tensor: 2, foo: 1}")).missed("spec.parallelism.foo")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: Deployment", "kind: DaemonSet", ("replicas", "every node")),
        ("{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", "{type: Recreate}", ("Recreate",)),
        ("replicas: 3", "minReadySeconds: 30", ("minReadySeconds",)),
        ("replicas: 3", "paused: true", ("spec.paused",)),
    ],
)
def test_notes_about_a_workload(old: str, new: str, words: tuple[str, ...]) -> None:
    assert text(test_kubernetes.DEPLOYMENT.replace(old, new)).noted(*words)


INPUTS = {
    "vllm": f"vllm serve acme/t -sc '{NGRAM}'",
    "docker": LINE,
    "start": "docker start x",
    "compose": test_compose.FILE,
    "kubernetes": test_kubernetes.DEPLOYMENT,
    "helm": test_kubernetes.VALUES,
    "config": "model: acme/t\nspeculative_config: {method: ngram, num_speculative_tokens: 3}\n",
    "json": NGRAM,
    "list": "[1, 2]",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_form_with_the_words_of_every_other(form: str, kind: str) -> None:
    for arguments, stdin in ((["-f", "-"], INPUTS[kind]), (["--", *INPUTS[kind].split()], None)):
        for more in ([], ["--model", "acme/t"]):
            found = run("--from", form, "--allow-partial", *more, *arguments, text=stdin)
            assert found.exit_code in (0, 2)
            assert found.exit_code == 0 or "Error: " in found.stderr
    if form == "docker" and kind in ("vllm", "start"):
        assert "no docker run command is in this" in run("--from", form, "--", *INPUTS[kind].split()).stderr
