"""Manifests that the API server must refuse, each with the words that tell a person what to do.

Changes of BASE, in YAML, so that quoting is what users write. Grouped by the field that is wrong.
"""

from typing import Final

from dsd_runtime.vllm_options import MTP_ALIASES
from tests.contract import beside, gateways
from tests.contract.admission import Case


def _schedule(*ranges: str) -> str:
    return "spec: {schedule: [" + ", ".join(_range(r) for r in ranges) + "]}"


def _range(text: str) -> str:
    """`1-8:3` as a range."""
    sizes, _, k = text.partition(":")
    start, _, end = sizes.rpartition("-")
    return f"{{startBatchSize: {start}, endBatchSize: {end}, numSpeculativeTokens: {k}}}"


def _drafter(text: str, schedule: str = "", engine: str = "") -> str:
    more = (f", schedule: [{schedule}]" if schedule else "") + (f", engine: {{{engine}}}" if engine else "")
    return f"spec: {{drafter: {{promptLookup: '!delete', {text}}}{more}}}"


def _argument(item: str) -> str:
    return f"spec: {{engine: {{extraArgs: [{item}]}}}}"


_LONG: Final = ", ".join(_range(f"{i}-{i}:1") for i in range(1, 34))
_ONE_RANGE: Final = _range("1-8:3")

SCHEDULE: Final = (
    Case("schedule-missing", "spec: {schedule: '!delete'}", "spec.schedule: Required value"),
    Case("schedule-empty", "spec: {schedule: []}", "should have at least 1 items"),
    Case("schedule-33-ranges", f"spec: {{schedule: [{_LONG}]}}", "must have at most 32 items"),
    Case("first-range-at-2", _schedule("2-8:3"), "the first range must start at 1"),
    Case("first-range-at-0", _schedule("0-8:3"), "startBatchSize in body should be greater than or equal to 1"),
    Case("range-backward", _schedule("1-8:3", "16-9:1"), "startBatchSize must not be above endBatchSize"),
    Case("ranges-descending", _schedule("1-8:3", "33-64:1", "9-32:2"), "sort them by startBatchSize"),
    Case("ranges-overlap", _schedule("1-8:3", "8-16:1"), "range [0] ends at or after the start of the next one"),
    Case("ranges-overlap-later", _schedule("1-8:3", "9-16:1", "12-20:0"), "range [1] ends at or after the start"),
    Case("ranges-equal", _schedule("1-8:3", "1-8:3"), "ranges overlap: range [0]"),
    Case("range-inside-another", _schedule("1-64:3", "9-16:1"), "each batch size may be in one range only"),
    Case("k-above-maximum", _schedule("1-8:3", "9-16:4"), "range [1] asks for more tokens than drafter.numSpec"),
    Case("k-above-maximum-restart", _schedule("1-8:5"), "raise drafter.numSpeculativeTokens, which restarts the pods"),
    Case("k-negative", _schedule("1-8:-1"), "numSpeculativeTokens in body should be greater than or equal to 0"),
    Case("k-fraction", _schedule("1-8:1.5"), "must be of type integer"),
    Case("k-quoted", _schedule("1-8:'3'"), "must be of type integer"),
    Case("range-without-k", "spec: {schedule: [{startBatchSize: 1, endBatchSize: 8}]}", "Required value"),
    Case("range-as-triple", "spec: {schedule: [[1, 8, 3]]}", "must be of type object"),
    Case("range-as-five", "spec: {schedule: [[1, 8, 0, 4096, 3]]}", "must be of type object"),
    Case("schedule-flat", "spec: {schedule: [1, 8, 3]}", "must be of type object"),
    Case("schedule-as-text", "spec: {schedule: '[[1, 8, 3]]'}", "must be of type array"),
    Case("range-as-text", "spec: {schedule: ['1-8:3']}", "must be of type object"),
    Case("end-null", "spec: {schedule: [{startBatchSize: 1, endBatchSize: null, numSpeculativeTokens: 3}]}", "endB"),
    Case("sizes-quoted", _schedule("'1'-'8':3"), "must be of type integer"),
    Case("schedule-as-map", 'spec: {schedule: {"1-8": 3}}', 'unknown field "spec.schedule.1-8"'),
    Case("range-misspelt", "spec: {schedule: [{start: 1, end: 8, k: 3}]}", 'unknown field "spec.schedule[0].start"'),
    Case("end-above-int32", _schedule("1-4294967296:3"), "endBatchSize"),
)


def _monitor(text: str) -> str:
    return f"spec: {{monitoring: {{podMonitor: {{enabled: true, {text}}}}}}}"


_LABELS: Final = ", ".join(f"label-{i}: x" for i in range(17))

MONITORING: Final = (
    Case("pod-monitor-as-flag", "spec: {monitoring: {podMonitor: true}}", "must be of type object"),
    Case("pod-monitor-quoted", "spec: {monitoring: {podMonitor: {enabled: 'true'}}}", "must be of type boolean"),
    Case("pod-monitor-misspelt", "spec: {monitoring: {podmonitor: {}}}", 'unknown field "spec.monitoring.podmonitor"'),
    Case("interval-of-no-unit", _monitor("interval: '15'"), "spec.monitoring.podMonitor.interval in body should match"),
    Case("interval-number", _monitor("interval: 15"), "must be of type string"),
    Case("interval-zero", _monitor("interval: 0s"), "spec.monitoring.podMonitor.interval in body should match"),
    Case("interval-of-hours", _monitor("interval: 1h"), "spec.monitoring.podMonitor.interval in body should match"),
    Case("interval-empty", _monitor("interval: ''"), "should be at least 2 chars long"),
    Case("label-with-space", _monitor("labels: {release: my prometheus}"), "labels.release in body should match"),
    Case("label-of-64", _monitor(f"labels: {{release: {'x' * 64}}}"), "may not be more than 63"),
    Case("label-name-bad", _monitor("labels: {'-x': a}"), "-x is not a label name"),
    Case("label-owned", _monitor("labels: {app.kubernetes.io/name: mine}"), "io/name belongs to the operator; choose"),
    Case("label-not-text", _monitor("labels: {release: 1}"), "must be of type string"),
    Case("labels-17", _monitor(f"labels: {{{_LABELS}}}"), "must have at most 16 items"),
)

SMOOTHING: Final = (
    Case("dwell-negative", "spec: {smoothing: {dwellSteps: -1}}", "dwellSteps in body should be greater than or equal"),
    Case("dwell-too-long", "spec: {smoothing: {dwellSteps: 10001}}", "should be less than or equal to 10000"),
    Case("dwell-fraction", "spec: {smoothing: {dwellSteps: 1.5}}", "must be of type integer"),
    Case("dwell-as-time", "spec: {smoothing: {dwellSteps: 2s}}", "must be of type integer"),
    Case(
        "margin-negative", "spec: {smoothing: {marginPercent: -5}}", "marginPercent in body should be greater than or"
    ),
    Case("margin-too-wide", "spec: {smoothing: {marginPercent: 51}}", "should be less than or equal to 50"),
    Case("margin-with-sign", "spec: {smoothing: {marginPercent: 10%}}", "must be of type integer"),
    Case("smoothing-misspelt", "spec: {smoothing: {dwell: 20}}", 'unknown field "spec.smoothing.dwell"'),
    Case("smoothing-true", "spec: {smoothing: true}", "must be of type object"),
)

MODEL: Final = (
    Case("model-missing", "spec: {model: '!delete'}", "spec.model: Required value"),
    Case("model-name-empty", "spec: {model: {name: ''}}", "at least 1 chars long"),
    Case("model-relative", "spec: {model: {name: ./model}}", "give the absolute path inside the pod"),
    Case("model-relative-deep", "spec: {model: {name: models/llama/8b}}", "a relative path cannot be loaded"),
    Case("model-home", "spec: {model: {name: ~/model}}", "give the absolute path"),
    Case("model-hf", "spec: {model: {name: 'hf://acme/llama'}}", "write the Hugging Face id without hf://"),
    Case("model-web", "spec: {model: {name: 'https://hub.example/acme/llama'}}", "write the Hugging Face id"),
    Case("model-pvc", "spec: {model: {name: 'pvc://claim/llama'}}", "mount it with podTemplate"),
    Case("model-with-space", "spec: {model: {name: 'acme/llama 8b'}}", "use a Hugging Face id (org/name)"),
    Case("model-revision-number", "spec: {model: {revision: 1.10}}", "must be of type string"),
    Case("served-names-twice", "spec: {model: {servedNames: [a, a]}}", "Duplicate value"),
    Case("served-names-string", "spec: {model: {servedNames: a}}", "must be of type array"),
    Case("token-without-key", "spec: {model: {tokenSecretRef: {name: hub}}}", "tokenSecretRef.key: Required value"),
    Case(
        "token-twice",
        "spec: {model: {tokenSecretRef: {name: hub, key: token}}, engine: {env: [{name: HF_TOKEN, value: x}]}}",
        "keep model.tokenSecretRef",
    ),
)

DRAFTER: Final = (
    Case("drafter-missing", "spec: {drafter: '!delete'}", "spec.drafter: Required value"),
    Case("maximum-missing", "spec: {drafter: {numSpeculativeTokens: '!delete'}}", "Required value"),
    Case("maximum-0", "spec: {drafter: {numSpeculativeTokens: 0}}", "should be greater than or equal to 1"),
    Case("maximum-negative", "spec: {drafter: {numSpeculativeTokens: -1}}", "should be greater than or equal to 1"),
    Case("maximum-129", "spec: {drafter: {numSpeculativeTokens: 129}}", "should be less than or equal to 128"),
    Case("maximum-300", "spec: {drafter: {numSpeculativeTokens: 300}}", "should be less than or equal to 128"),
    Case("maximum-quoted", "spec: {drafter: {numSpeculativeTokens: '3'}}", "must be of type integer"),
    Case("maximum-fraction", "spec: {drafter: {numSpeculativeTokens: 2.5}}", "must be of type integer"),
    Case("method-missing", _drafter("method: '!delete'"), "spec.drafter.method: Required value"),
    Case("maximum-float-in-json", "spec: {drafter: {numSpeculativeTokens: 3.0}}", "expected int, got float64"),
    Case("maximum-true", "spec: {drafter: {numSpeculativeTokens: true}}", "must be of type integer"),
    Case("method-unknown", _drafter("method: magic"), "unknown method; vLLM has ngram, medusa"),
    Case("method-upper-case", _drafter("method: EAGLE3, model: acme/h"), "written in lower case: eagle3"),
    *(Case(f"method-{alias}", _drafter(f"method: {alias}"), "write method mtp") for alias in MTP_ALIASES),
    Case("method-in-capitals", _drafter("method: NGRAM"), "written in lower case: ngram"),
    Case("method-p-eagle", _drafter("method: P-EAGLE, model: acme/h"), "method eagle3 and parameters parallel"),
    Case("method-pard", _drafter("method: pard, model: acme/d"), "parallel_drafting: true"),
    Case("method-arctic", _drafter("method: arctic"), "write method suffix"),
    Case("method-brackets", _drafter("method: '[ngram]'"), "write method ngram"),
    Case("eagle-without-model", _drafter("method: eagle"), "set drafter.model"),
    Case("draft-model-without-model", _drafter("method: draft_model"), "set drafter.model"),
    Case("dflash-without-model", _drafter("method: dflash"), "set drafter.model"),
    Case("ngram-with-model", _drafter("method: ngram, model: acme/d"), "remove drafter.model"),
    Case("suffix-with-model", _drafter("method: suffix, model: acme/d", _ONE_RANGE), "remove drafter.model"),
    Case("draft-model-relative", _drafter("method: eagle, model: ./head"), "a relative path cannot be loaded"),
    Case("drafter-hf", _drafter("method: eagle, model: 'hf://acme/head'"), "write the Hugging Face id without hf://"),
    Case("drafter-pvc", _drafter("method: eagle, model: 'pvc://claim/head'"), "mount it with podTemplate"),
    Case("custom-class-path", _drafter("method: custom_class, model: acme/d", _ONE_RANGE), "dotted name"),
    Case("revision-without-model", _drafter("method: ngram, revision: main"), "set drafter.model or remove revision"),
    Case("lookup-for-eagle", "spec: {drafter: {method: eagle, model: acme/h}}", "remove promptLookup"),
    Case("lookup-empty", "spec: {drafter: {promptLookup: {min: '!delete', max: '!delete'}}}", "set max, or min and"),
    Case("lookup-min-above-max", "spec: {drafter: {promptLookup: {min: 5, max: 2}}}", "min must not be above max"),
    Case("lookup-min-0", "spec: {drafter: {promptLookup: {min: 0}}}", "greater than or equal to 1"),
    Case("prepared-above-maximum", "spec: {drafter: {preparedTokens: [0, 4]}}", "cannot be prepared"),
    Case("prepared-twice", "spec: {drafter: {preparedTokens: [1, 1]}}", "Duplicate value"),
    Case("prepared-empty", "spec: {drafter: {preparedTokens: []}}", "should have at least 1 items"),
    Case("draft-split-2-of-4", _drafter(
        "method: eagle, model: acme/h, tensorParallelSize: 2", engine="tensorParallelSize: 4"), "must be 1 or the"),
    Case("draft-split-4-of-1", _drafter("method: eagle, model: acme/h, tensorParallelSize: 4"), "must be 1 or the"),
    Case("draft-model-split-1-of-2", _drafter(
        "method: draft_model, model: acme/d, tensorParallelSize: 1", engine="tensorParallelSize: 2"),
        "draft_model must be split like the target model"),
    Case("ngram-split", _drafter("method: ngram, tensorParallelSize: 1"), "no draft model that could be split"),
)  # fmt: skip

SUPPORT: Final = (
    Case("suffix-smaller-k", _drafter("method: suffix"), "stops the engine at any other K than its maximum"),
    Case("suffix-v2", _drafter("method: suffix", _ONE_RANGE, "modelRunner: V2"), "set engine.modelRunner to Auto"),
    Case("medusa-smaller-k", _drafter("method: medusa, model: acme/m"), "stops the engine at any other K"),
    Case("medusa-v2", _drafter("method: medusa, model: acme/m", _ONE_RANGE, "modelRunner: V2"), "vLLM has medusa on"),
    Case("custom-class-v2", _drafter(
        "method: custom_class, model: my.Proposer", _ONE_RANGE, "modelRunner: V2"), "vLLM has custom_class on"),
    Case("ngram-gpu-auto", _drafter("method: ngram_gpu"), "and so does ngram_gpu on V2"),
    Case("dspark-v1", _drafter("method: dspark", engine="modelRunner: V1"), "on model runner V2 only"),
    Case("mlp-speculator", _drafter("method: mlp_speculator, model: acme/m", _ONE_RANGE), "no proposer for mlp_spec"),
    Case("mlp-speculator-v2", _drafter(
        "method: mlp_speculator, model: acme/m", _ONE_RANGE, "modelRunner: V2"), "no proposer for mlp_spec"),
    Case("custom-class-smaller-k", _drafter("method: custom_class, model: my.Proposer"), "does not tell a custom"),
    Case("custom-class-prepared", _drafter(
        "method: custom_class, model: my.Proposer, preparedTokens: [0, 3]", _ONE_RANGE), "(and preparedTokens)"),
    Case("hidden-states-3", _drafter("method: extract_hidden_states", _ONE_RANGE), "works with K=1 only"),
    Case("parallel-smaller-k", _drafter(
        "method: draft_model, model: acme/pard, parameters: {parallel_drafting: true}"), "0 or the drafter's num"),
    Case("parallel-v2", _drafter(
        "method: eagle3, model: acme/h, parameters: {parallel_drafting: true}", _ONE_RANGE, "modelRunner: V2"),
        "parallel drafting on model runner V1 only"),
    Case("runner-unknown", "spec: {engine: {modelRunner: v2}}", 'supported values: "Auto", "V1", "V2"'),
)  # fmt: skip

_TYPED: Final = (
    ("method", "eagle", "drafter.method"),
    ("model", "acme/d", "drafter.model"),
    ("revision", "main", "drafter.revision"),
    ("num_speculative_tokens", "7", "drafter.numSpeculativeTokens"),
    ("num-speculative-tokens", "7", "drafter.numSpeculativeTokens"),
    ("num_speculative_tokens_per_batch_size", "[[1, 8, 3]]", "schedule"),
    ("num-speculative-tokens-per-batch-size", "[[1, 8, 3]]", "schedule"),
    ("prompt_lookup_max", "4", "drafter.promptLookup.max"),
    ("prompt_lookup_min", "4", "drafter.promptLookup.min"),
    ("prompt-lookup-min", "4", "drafter.promptLookup.min"),
    ("draft_tensor_parallel_size", "1", "drafter.tensorParallelSize"),
    ("tensor_parallel_size", "1", "drafter.tensorParallelSize"),
)

PARAMETERS: Final = (
    *(
        Case(f"parameter-{key}", f"spec: {{drafter: {{parameters: {{{key}: {value}}}}}}}", f"set spec.{field} instead")
        for key, value, field in _TYPED
    ),
    Case("heterogeneous-v2", _drafter(
        "method: draft_model, model: acme/d, parameters: {use_heterogeneous_vocab: true}", engine="modelRunner: V2"),
        "works with method draft_model only, and not on model runner V2"),
    Case("heterogeneous-eagle", _drafter(
        "method: eagle, model: acme/d, parameters: {use_heterogeneous_vocab: true}"), "with method draft_model only"),
    Case("adaptive-v1", _drafter(
        "method: dspark, parameters: {enable_adaptive_verification: true}", engine="modelRunner: V1"),
        "not on model runner V1"),
    Case("parallel-ngram", _drafter("method: ngram, parameters: {parallel_drafting: true}"), "remove parallel"),
    Case("parameter-switch-quoted", _drafter(
        "method: draft_model, model: acme/d, parameters: {parallel_drafting: 'true'}"), "must be of type boolean"),
    Case("parameters-list", "spec: {drafter: {parameters: [quantization]}}", "must be of type object"),
)  # fmt: skip

ARGUMENTS: Final = (
    *(Case(f"speculation {item}", _argument(item), "spec.drafter and spec.schedule") for item in (
        "--speculative-config, '{}'", "'--speculative-config={}'", "--speculative_config, '{}'", "-sc, '{}'",
        "'-sc={}'",
        "--speculative, '{}'", "--speculative-config.method, mtp", "'-sc.num_speculative_tokens=3'", "--spec-tok, '3'",
        "--spec-method=eagle3", "--spec_model, acme/h", "--speculative-model, acme/d",
    )),
    *(Case(f"model {item}", _argument(item), "spec.model (name, servedNames, revision") for item in (
        "--model, acme/other", "--model=acme/other", "--served-model-name, a, b", "--served_model_name=a",
        "--served, a", "--revision=main", "--hf-token=x", "--hf_tok, x",
    )),
    *(Case(f"typed {item}", _argument(item), "has a field of its own in spec.engine") for item in (
        "--max-num-seqs, '8'", "--max_num_seqs=8", "--max-num-se, '8'", "--dtype=half", "--quantization, fp8",
        "-q, fp8",
        "-qfp8", "-tp, '2'", "'-tp=2'", "--tensor-parallel, '2'", "--gpu-memory-utilization=0.5",
        "--device-memory-utilization=0.5", "--gpu_mem, '0.5'",
    )),
    *(Case(f"drain {item}", _argument(item), "set spec.rollout.drainTimeoutSeconds") for item in (
        "--shutdown-timeout, '50'", "--shutdown-timeout=50", "--shutdown_timeout=50", "--shut, '0'",
    )),
    *(Case(f"listening {item}", _argument(item), "rely on plain HTTP") for item in (
        "--host, 0.0.0.0", "--port=9000", "--por, '9000'", "--uds=/tmp/s", "--root-path=/x", "--headless", "--grpc",
        "--ssl-keyfile=/k", "--ssl_certfile, /c", "--enable-ssl-refresh", "--no-enable-ssl-refresh",
    )),
    *(Case(f"topology {item}", _argument(item), "data parallelism is not supported") for item in (
        "-dp, '4'", "--data-parallel-size=2", "--data_parallel_size_local, '2'", "--data-parallel, '4'",
        "--no-data-parallel-hybrid-lb",
    )),
    *(Case(f"topology {item}", _argument(item), "use spec.engine.nodes") for item in (
        "--nnodes=2", "-n2", "--node-rank, '0'", "-r, '1'", "--master-addr=10.0.0.1",
    )),
    *(Case(f"topology {item}", _argument(item), "one pod is one engine") for item in (
        "--distributed-executor-backend=ray", "--distributed-executor-backend, external_launcher",
    )),
    *(Case(f"pipeline {item}", _argument(item), "pipeline parallelism is not supported") for item in (
        "-pp, '2'", "'-pp=2'", "--pipeline-parallel-size=2", "--pipeline_parallel, '2'",
    )),
    Case("config-two-words", _argument("--config, /etc/vllm.yaml"), "write the options one by one"),
    Case("config-joined", _argument("--config=/etc/vllm.yaml"), "write the options one by one"),
    Case("scheduler-class", _argument("--scheduler-cls, my.Scheduler"), "would decide K against the schedule"),
    Case("help", _argument("--help"), "ends instead of serving"),
    Case("help-short", _argument("-h"), "ends instead of serving"),
    Case("own-option", _argument("--dsd-config=/x"), "are the operator's own"),
    Case("double-dash", _argument("--"), "would turn every option after it into a value"),
    Case("one-item-two-words", _argument("'--max-num-batched-tokens 8192'"), "split into two items"),
    Case("one-item-json", _argument("""'--override-generation-config {"a": 1}'"""), "split into two items"),
    Case("one-item-trailing-space", _argument("'--enforce-eager '"), "split into two items"),
    Case("max-model-len", _argument("--max-model-len=4096"), "set engine.maxModelLen"),
    Case("max-model-len-apart", _argument("--max_model_len, '4096'"), "set engine.maxModelLen"),
    Case("max-model-len-twice", "spec: {engine: {maxModelLen: 4096, extraArgs: [--max-model-len=auto]}}", "keep one"),
    *(Case(f"dead {item}", _argument(item), f"no longer has {item.partition(',')[0].partition('=')[0]}") for item in (
        "--num-speculative-tokens, '5'", "--ngram-prompt-lookup-max=4",
        "--ngram-prompt-lookup-min=2", "--use-v2-block-manager", "--swap-space, '20'",
        "--disable-log-requests", "--guided-decoding-backend=outlines", "--enable-reasoning", "--task=generate",
        "--device=cuda", "--num-scheduler-steps=8", "--max-seq-len-to-capture=8192", "--cuda-graph-sizes=8",
    )),
    Case("argument-number", _argument("--seed, 0"), "must be of type string"),
    Case("arguments-string", "spec: {engine: {extraArgs: --seed=0}}", "must be of type array"),
    Case("argument-too-long", _argument("--chat-template=" + "x" * 4096), "may not be more than 4096"),
)  # fmt: skip

ENVIRONMENT: Final = (
    *(Case(f"env {name}", f"spec: {{engine: {{env: [{{name: {name}, value: x}}]}}}}", text) for name, text in (
        ("VLLM_USE_V2_MODEL_RUNNER", "set spec.engine.modelRunner instead"),
        ("VLLM_PLUGINS", "set it in the image instead"),
        ("PROMETHEUS_MULTIPROC_DIR", "metrics are collected through it"),
        ("prometheus_multiproc_dir", "metrics are collected through it"),
        ("VLLM_PORT", "it is not the HTTP port"),
        ("VLLM_USE_RUST_FRONTEND", "does not load the routes"),
        ("VLLM_DP_SIZE", "use spec.replicas"),
        ("DSD_CONFIG", "belong to the runtime"),
    )),
    Case("env-twice", "spec: {engine: {env: [{name: HF_HOME, value: a}, {name: HF_HOME, value: b}]}}", "Duplicate"),
    Case("env-number", "spec: {engine: {env: [{name: A, value: 1}]}}", "must be of type string"),
    Case("env-both", "spec: {engine: {env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}}",
         "keep one"),
    Case("env-nameless", "spec: {engine: {env: [{value: x}]}}", "name: Required value"),
    Case("env-bad-name", "spec: {engine: {env: [{name: 'A B', value: x}]}}", "should match"),
)  # fmt: skip

ENGINE: Final = (
    Case("image-with-scheme", "spec: {engine: {image: 'https://registry.example/vllm:v1'}}", "no https:// in front"),
    Case("image-with-space", "spec: {engine: {image: 'vllm: v1'}}", "no white space inside"),
    Case("pull-policy", "spec: {engine: {imagePullPolicy: always}}", 'supported values: "Always"'),
    Case("max-num-seqs-0", "spec: {engine: {maxNumSeqs: 0}}", "greater than or equal to 1"),
    Case("max-num-seqs-1k", "spec: {engine: {maxNumSeqs: 1k}}", "must be of type integer"),
    Case("max-model-len-auto", "spec: {engine: {maxModelLen: auto}}", "must be of type integer"),
    Case("dtype", "spec: {engine: {dtype: fp16}}", 'supported values: "auto", "bfloat16"'),
    Case("gpu-memory-0", "spec: {engine: {gpuMemoryUtilization: 0}}", "should be greater than 0"),
    Case("gpu-memory-percent", "spec: {engine: {gpuMemoryUtilization: 90}}", "should be less than or equal to 1"),
    Case("engine-misspelt", "spec: {engine: {maxNumSeq: 8}}", 'unknown field "spec.engine.maxNumSeq"'),
)

PODS: Final = (
    Case("replicas-negative", "spec: {replicas: -1}", "greater than or equal to 0"),
    Case("memory-16GB", "spec: {resources: {limits: {memory: 16GB}}}", "memory is not a quantity"),
    Case("memory-exponent-and-suffix", "spec: {resources: {limits: {memory: 1e3Mi}}}", "memory is not a quantity"),
    Case("cpu-comma", "spec: {resources: {requests: {cpu: '0,5'}}}", "cpu is not a quantity"),
    Case("half-a-gpu", "spec: {resources: {limits: {nvidia.com/gpu: '0.5'}}}", "devices are counted whole"),
    Case("cpu-fraction-unquoted", "spec: {resources: {limits: {cpu: 0.5}}}", "must be of type integer"),
    Case("quantity-boolean", "spec: {resources: {limits: {cpu: true}}}", "must be of type integer"),
    Case("claims-twice", "spec: {resources: {claims: [{name: a}, {name: a}]}}", "Duplicate value"),
    Case("shared-memory", "spec: {sharedMemory: {sizeLimit: 8 Gi}}", "not a quantity: use a number with a suffix"),
    Case("timeout-0", "spec: {startup: {timeoutSeconds: 0}}", "greater than or equal to 30"),
    Case("timeout-text", "spec: {startup: {timeoutSeconds: 1h}}", "must be of type integer"),
    Case("rollout-stuck", "spec: {rollout: {maxSurge: 0, maxUnavailable: 0}}", "no pod could ever be replaced"),
    Case("rollout-ready-late", "spec: {rollout: {minReadySeconds: 601}}", "less than or equal to 600"),
    Case("rollout-drain-negative", "spec: {rollout: {drainTimeoutSeconds: -1}}", "greater than or equal to 0"),
    Case("rollout-drain-days", "spec: {rollout: {drainTimeoutSeconds: 86401}}", "less than or equal to 86400"),
    Case("rollout-restarted-when", "spec: {rollout: {restartedAt: yesterday}}", "must be of type date-time"),
    Case("rollout-percent", "spec: {rollout: {maxSurge: 25%}}", "must be of type integer"),
    Case("label-boolean", "spec: {podTemplate: {metadata: {labels: {gpu: true}}}}", "must be of type string"),
    Case("annotation-number", "spec: {podTemplate: {metadata: {annotations: {size: 4}}}}", "must be of type string"),
    Case("template-containers", "spec: {podTemplate: {containers: []}}", 'unknown field "spec.podTemplate.containers"'),
    Case("template-spec-list", "spec: {podTemplate: {spec: []}}", "must be of type object"),
    Case("spec-misspelt", "spec: {replica: 2}", 'unknown field "spec.replica"'),
    Case("spec-missing", "spec: '!delete'", "spec: Required value"),
    Case("name-not-dns", "metadata: {name: Demo_1}", "lowercase RFC 1123 subdomain"),
    Case("name-too-long", f"metadata: {{name: {'a' * 254}}}", "must be no more than 253"),
)

_SHARE: Final = "set cache.accessMode to ReadWriteMany"

CACHE: Final = (
    Case("cache-two-claims", "spec: {cache: {existingClaim: a, size: 1Gi}}", "existingClaim and size are both given"),
    Case("cache-class-of-nothing", "spec: {cache: {storageClass: fast}}", "give its size too"),
    Case(
        "cache-mode-of-theirs", "spec: {cache: {existingClaim: a, accessMode: ReadWriteMany}}", "or remove accessMode"
    ),
    Case("cache-size-100GB", "spec: {cache: {size: 100GB}}", "not a size: use a number with a suffix"),
    Case("cache-size-0", "spec: {cache: {size: '0'}}", "above 0"),
    Case("cache-size-below-0", "spec: {cache: {size: '-1Gi'}}", "above 0"),
    Case("cache-size-unquoted", "spec: {cache: {size: 100}}", "must be of type string"),
    Case("cache-read-only", "spec: {cache: {size: 1Gi, accessMode: ReadOnlyMany}}", "supported values"),
    Case("cache-claim-name", "spec: {cache: {existingClaim: My_Claim}}", "existingClaim in body should match"),
    Case("cache-class-name", "spec: {cache: {size: 1Gi, storageClass: Fast_SSD}}", "storageClass in body should match"),
    Case(
        "cache-of-one-for-two", "spec: {cache: {size: 1Gi}, replicas: 2}", f"and replicas is above 1; {_SHARE}"
    ),
    Case("cache-of-one-pod-for-two", "spec: {cache: {size: 1Gi, accessMode: ReadWriteOncePod}, replicas: 2}", _SHARE),
    Case("cache-of-one-and-surge", "spec: {cache: {size: 1Gi}, rollout: {maxSurge: 1}}", "starts a new pod beside"),
    Case("cache-of-one-for-two-nodes", "spec: {cache: {size: 1Gi}, engine: {nodes: 2, tensorParallelSize: 2}}",
         "one on each"),
    Case("cache-group-below-0", "spec: {cache: {size: 1Gi, fsGroup: -1}}", "greater than or equal to 0"),
    Case("cache-offline-quoted", "spec: {cache: {offline: 'true'}}", "must be of type boolean"),
    Case("cache-nested", "spec: {cache: {pvc: {size: 1Gi}}}", 'unknown field "spec.cache.pvc"'),
)  # fmt: skip

REJECTED: Final = (
    *SCHEDULE, *SMOOTHING, *MONITORING, *MODEL, *DRAFTER, *SUPPORT, *PARAMETERS, *ARGUMENTS, *ENVIRONMENT, *ENGINE,
    *PODS, *CACHE, *beside.REJECTED, *gateways.REJECTED,
)  # fmt: skip
