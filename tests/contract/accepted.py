"""Manifests that the API server must take: each kind of rule has its good case here, its bad ones in `rejected`."""

from typing import Final

from tests.contract import beside, gateways
from tests.contract.admission import Case


def _drafter(text: str, schedule: str = "", engine: str = "") -> str:
    more = (f", schedule: [{schedule}]" if schedule else "") + (f", engine: {{{engine}}}" if engine else "")
    return f"spec: {{drafter: {{promptLookup: '!delete', {text}}}{more}}}"


def _schedule(*ranges: tuple[int, int, int]) -> str:
    rows = (f"{{startBatchSize: {s}, endBatchSize: {e}, numSpeculativeTokens: {k}}}" for s, e, k in ranges)
    return ", ".join(rows)


_ONLY_3: Final = _schedule((1, 64, 3), (65, 256, 3))
_FULL: Final = _schedule(*((i, i, i % 4) for i in range(1, 33)))
_STEEP: Final = _schedule((1, 1, 7), (2, 2, 5), (3, 3, 4), (4, 4, 3), (5, 5, 2), (6, 32, 7))

SCHEDULE: Final = (
    Case("as-it-is", "{}"),
    Case("one-range", f"spec: {{schedule: [{_schedule((1, 1, 0))}]}}"),
    Case("32-ranges", f"spec: {{schedule: [{_FULL}]}}"),
    Case("gap", f"spec: {{schedule: [{_schedule((1, 16, 3), (64, 128, 2), (256, 4096, 0))}]}}"),
    Case("rising-k", f"spec: {{schedule: [{_schedule((1, 1, 1), (2, 2, 3), (3, 9, 0), (10, 11, 3))}]}}"),
    Case("steep", f"spec: {{drafter: {{numSpeculativeTokens: 7}}, engine: {{maxNumSeqs: 6}}, schedule: [{_STEEP}]}}"),
    Case("off-everywhere", f"spec: {{schedule: [{_schedule((1, 64, 0))}]}}"),
    Case(
        "beyond-max-num-seqs", f"spec: {{schedule: [{_schedule((1, 2, 3), (3, 999, 2))}], engine: {{maxNumSeqs: 1}}}}"
    ),
    Case("largest-batch", f"spec: {{schedule: [{_schedule((1, 2147483647, 3))}]}}"),
    Case("k-of-128", "spec: {drafter: {numSpeculativeTokens: 128}}"),
)

SMOOTHING: Final = (
    Case("smoothing", "spec: {smoothing: {dwellSteps: 20, marginPercent: 10}}"),
    Case("smoothing-off", "spec: {smoothing: {dwellSteps: 0, marginPercent: 0}}"),
    Case("smoothing-most", "spec: {smoothing: {dwellSteps: 10000, marginPercent: 50}}"),
    Case("smoothing-half", "spec: {smoothing: {marginPercent: 10}}"),
    Case("smoothing-empty", "spec: {smoothing: {}}"),
    Case("smoothing-null", "spec: {smoothing: null}"),
)

MONITORING: Final = (
    Case("monitoring-empty", "spec: {monitoring: {}}"),
    Case("monitoring-null", "spec: {monitoring: {podMonitor: null}}"),
    Case("pod-monitor", "spec: {monitoring: {podMonitor: {enabled: true}}}"),
    *(Case(f"interval {interval}", f"spec: {{monitoring: {{podMonitor: {{enabled: true, interval: {interval}}}}}}}")
      for interval in ("5s", "15s", "1m", "1m30s", "90s")),
    Case("pod-monitor-labels", "spec: {monitoring: {podMonitor: {enabled: true, labels: {release: prometheus-stack, "
         "monitoring.example.com/team: Team_A.1, empty: ''}}}}"),
    Case("pod-monitor-labels-null", "spec: {monitoring: {podMonitor: {labels: null}}}"),
)  # fmt: skip

MODEL: Final = (
    *(Case(f"model {name}", f"spec: {{model: {{name: '{name}'}}}}") for name in (
        "gpt2", "acme/llama-8b", "Acme-Labs/Tiny.Llama_v2-Instruct", "acme/llama-GGUF:Q4_K_M", "/models/llama",
        "s3://bucket/llama/8b", "gs://bucket/llama", "Qwen2.5", "gpt.small", "acme/_private",
    )),
    Case("revision", "spec: {model: {revision: '2024-06-01', servedNames: [a, org/b, 'c,d']}}"),
    Case("served-name-of-90", f"spec: {{model: {{servedNames: [acme/{'x' * 90}]}}}}"),
    Case("token", "spec: {model: {tokenSecretRef: {name: hub.token, key: HF_TOKEN}}}"),
)  # fmt: skip

DRAFTER: Final = (
    Case("eagle", _drafter("method: eagle, model: acme/eagle-head, revision: main")),
    Case("eagle3", _drafter(
        "method: eagle3, model: /models/head, tensorParallelSize: 1", engine="tensorParallelSize: 4")),
    Case("eagle-split", _drafter("method: eagle, model: a/h, tensorParallelSize: 4", engine="tensorParallelSize: 4")),
    Case("draft-model", _drafter(
        "method: draft_model, model: acme/d, tensorParallelSize: 2", engine="tensorParallelSize: 2")),
    Case("mtp", _drafter("method: mtp")),
    Case("mtp-own-model", _drafter("method: mtp, model: acme/t-assistant")),
    Case("dspark", _drafter("method: dspark", engine="modelRunner: V2")),
    Case("dspark-own-model", _drafter("method: dspark, model: s3://bucket/dspark")),
    Case("dflash", _drafter("method: dflash, model: acme/t-DFlash", engine="modelRunner: V1")),
    Case("ngram-no-window", _drafter("method: ngram")),
    Case("ngram-only-max", "spec: {drafter: {promptLookup: {min: '!delete'}}}"),
    Case("ngram-v2", _drafter("method: ngram", engine="modelRunner: V2")),
    Case("ngram-gpu-v2", _drafter("method: ngram_gpu", engine="modelRunner: V2")),
    Case("ngram-gpu-at-maximum", _drafter("method: ngram_gpu", _ONLY_3)),
    Case("suffix-at-maximum", _drafter("method: suffix, preparedTokens: [3]", _ONLY_3, "modelRunner: V1")),
    Case("medusa-at-maximum", _drafter("method: medusa, model: acme/m", _ONLY_3)),
    Case("custom-class", _drafter("method: custom_class, model: my_package.MyProposer", _ONLY_3)),
    Case("pard-at-maximum", _drafter(
        "method: draft_model, model: acme/pard, parameters: {parallel_drafting: true}", _ONLY_3, "modelRunner: V1")),
    Case("parallel-off", _drafter("method: eagle, model: acme/h, parameters: {parallel_drafting: false}")),
    Case("hidden-states", _drafter(
        "method: extract_hidden_states, numSpeculativeTokens: 1", _schedule((1, 8, 1)))),
    Case("adaptive", _drafter("method: dspark, parameters: {enable_adaptive_verification: true}")),
    Case("prepared", "spec: {drafter: {preparedTokens: [0, 1, 3]}}"),
    Case("parameters", _drafter(
        "method: draft_model, model: acme/d, parameters: {quantization: fp8, enforce_eager: true, max-model-len: 2048, "
        "draft_load_config: {load_format: dummy}, use_heterogeneous_vocab: true}")),
    Case("parameters-of-dflash", _drafter(
        "method: dflash, model: acme/t-DFlash, parameters: {attention_backend: FLASH_ATTN, kv_cache_dtype: auto, "
        "disable_eagle_block_drop: true, moe_backend: auto, quantization: null}", engine="modelRunner: V1")),
    Case("parameters-of-mtp", _drafter("method: mtp, parameters: {enforce_eager: true}")),
    Case("synthetic-acceptance", "spec: {drafter: {parameters: {rejection_sample_method: synthetic, "
         "synthetic_acceptance_length: 2.27}}}"),
    Case("parameters-null", _drafter("method: ngram, parameters: null")),
)  # fmt: skip

ARGUMENTS: Final = tuple(
    Case(f"arguments {items}", f"spec: {{engine: {{extraArgs: [{items}]}}}}")
    for items in (
        "", "--seed, '0'", "--seed=0", "--seed, '-1'", "--enforce-eager", "--max-num-batched-tokens=16K", "-O3",
        "--model-impl=transformers", "--model-loader-extra-config.concurrency, '16'", "--config-format=hf",
        "--quantization-config, '{}'", "--max-num-scheduled-tokens=2048", "--max-model-len=auto",
        "--max-model-len, auto",
        "--max_model_len=-1", "--distributed-executor-backend=mp", "--distributed-executor-backend, uni",
        "'--chat-template={{ a b }}'", "--chat-template, '{% if a %} b'", "--compilation-config.mode, '3'",
        "--compilation_config, '{\"cudagraph_mode\": \"PIECEWISE\"}'", "--api-server-count, '2'", "-asc, '2'",
        "--cudagraph-capture-sizes, '1', '2', '4'", "--no-enable-prefix-caching", "--scheduling-policy=priority",
        "--tokenizer=acme/t", "--enable-lora", "'--hf-overrides={}'", "-dcp, '2'",
    )
)  # fmt: skip

ENVIRONMENT: Final = (
    Case("env", "spec: {engine: {env: [{name: HF_HOME, value: /cache}, {name: EMPTY}, {name: NUMBER, value: '4'}]}}"),
    Case(
        "env-from",
        "spec: {engine: {env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]}}",
    ),
    Case("env-logging", "spec: {engine: {env: [{name: VLLM_LOGGING_LEVEL, value: DEBUG}]}}"),
    Case("env-token-without-secret", "spec: {engine: {env: [{name: HF_TOKEN, value: x}]}}"),
    Case("env-null", "spec: {engine: {env: null}}"),
)

ENGINE: Final = (
    *(Case(f"image {image}", f"spec: {{engine: {{image: '{image}', imagePullPolicy: Always}}}}") for image in (
        "registry.local:5000/vllm", f"repo@sha256:{'0' * 64}", f"repo:v0.32.0@sha256:{'a' * 64}", "vllm:latest",
    )),
    Case("engine", "spec: {engine: {maxNumSeqs: 1048576, maxModelLen: 131072, dtype: bfloat16, quantization: fp8}}"),
    Case("engine-whole-gpu", "spec: {engine: {gpuMemoryUtilization: 1, tensorParallelSize: 8}}"),
    Case("engine-null", "spec: {engine: null}"),
)  # fmt: skip

PODS: Final = (
    Case("replicas-0", "spec: {replicas: 0}"),
    Case("unquoted", "spec: {resources: {limits: {cpu: 4, nvidia.com/gpu: 1, memory: 16Gi}}}"),
    Case("spellings", "spec: {resources: {requests: {cpu: 1.5m, memory: 1e9}, limits: {cpu: 1000m, memory: 400m}}}"),
    Case("many-devices", "spec: {resources: {limits: {nvidia.com/gpu: 1k}}}"),
    Case("claims", "spec: {resources: {claims: [{name: gpu, request: big}]}}"),
    Case("resources-null", "spec: {resources: null}"),
    Case("shared-memory", "spec: {sharedMemory: {sizeLimit: 8192Mi}}"),
    Case("shared-memory-bytes", "spec: {sharedMemory: {sizeLimit: 8589934592}}"),
    Case("startup", "spec: {startup: {timeoutSeconds: 7200}}"),
    Case("rollout", "spec: {rollout: {maxSurge: 1, maxUnavailable: 0}}"),
    Case("rollout-half", "spec: {rollout: {maxUnavailable: 2}}"),
    Case("rollout-slow", "spec: {rollout: {minReadySeconds: 600, drainTimeoutSeconds: 86400}}"),
    Case("rollout-at-once", "spec: {rollout: {minReadySeconds: 0, drainTimeoutSeconds: 0}}"),
    Case("rollout-restarted", "spec: {rollout: {restartedAt: '2026-11-30T02:11:11Z'}}"),
    Case(
        "template-metadata",
        "spec: {podTemplate: {metadata: {creationTimestamp: null, annotations: {sidecar.istio.io/inject: 'false'}, "
        "labels: {team: a}}}}",
    ),
    Case(
        "template-spec",
        "spec: {podTemplate: {spec: {tolerations: null, containers: null, volumes: [], nodeSelector: {gpu: 'true'}}}}",
    ),
    Case("template-null", "spec: {podTemplate: null}"),
    Case(
        "template-tolerations",
        "spec: {podTemplate: {spec: {tolerations: [{key: pool, value: a}, {key: pool, value: b}]}}}",
    ),
)

CACHE: Final = (
    Case("cache-empty", "spec: {cache: {}}"),
    Case("cache-null", "spec: {cache: null}"),
    Case("cache-existing", "spec: {cache: {existingClaim: models.v2}}"),
    Case("cache-existing-many-pods", "spec: {cache: {existingClaim: models}, replicas: 4, rollout: {maxSurge: 1}}"),
    Case("cache-size", "spec: {cache: {size: 100Gi}}"),
    Case("cache-size-1024Gi", "spec: {cache: {size: 1024Gi, storageClass: fast.ssd, accessMode: ReadWriteOncePod}}"),
    Case("cache-no-class", "spec: {cache: {size: 1Gi, storageClass: ''}}"),
    Case("cache-at-zero", "spec: {cache: {size: 1Gi}, replicas: 0}"),
    Case("cache-shared", "spec: {cache: {size: 1Ti, accessMode: ReadWriteMany}, replicas: 3, rollout: {maxSurge: 1}}"),
    Case("cache-shared-by-nodes", "spec: {cache: {size: 1Ti, accessMode: ReadWriteMany}, engine: {nodes: 2, "
         "tensorParallelSize: 2}}"),
    Case("cache-offline", "spec: {cache: {existingClaim: models, offline: true}}"),
    Case("cache-offline-on-an-own-volume", "spec: {model: {name: /models/llama}, cache: {offline: true}}"),
    Case("cache-group", "spec: {cache: {size: 1Gi, fsGroup: 0}}"),
    Case("model-on-the-cache", "spec: {model: {name: /cache/models/llama}, cache: {existingClaim: models}}"),
)  # fmt: skip

NAMES: Final = tuple(
    Case(f"name {name}", f"metadata: {{name: '{name}'}}")
    for name in ("tiny-llama-v0.1", "70b-chat", "123", "a" * 63, "a" * 64, "b" * 253, "vllm", "dsd")
)

ACCEPTED: Final = (
    *SCHEDULE, *SMOOTHING, *MONITORING, *MODEL, *DRAFTER, *ARGUMENTS, *ENVIRONMENT, *ENGINE, *PODS, *CACHE,
    *beside.ACCEPTED, *gateways.ACCEPTED, *NAMES,
)  # fmt: skip
