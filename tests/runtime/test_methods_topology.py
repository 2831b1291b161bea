"""Engines whose K must not change: refused at start, in the real engine, with the reason where people look for it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsd_runtime.topology import HYBRID_ON_CPU, MOE_DATA_PARALLEL, PIPELINE_PARALLEL, Topology
from tests.runtime.conftest import COMMON, NGRAM, wire
from tests.runtime.method_probe import Case, Prober
from tests.runtime.server import API_KEY, Server, free_port
from tests.runtime.test_methods_honoured import NGRAM as HYBRID_NGRAM

pytestmark = pytest.mark.engine

SECRET = "sesame"


@pytest.fixture(scope="module")
def refused(method_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A mixture of experts with two ranks and a config file. It starts, but serves nothing on a CPU, with us or not: an
    idle rank's dummy batch ends in NotImplementedError. A pipeline does not even start (the last test but one)."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "token").write_text(SECRET)
    config = folder / "config.yaml"
    config.write_text(json.dumps({"ranges": wire([(1, 64, 2)]), "auth": {"tokenFile": "token"}}))
    arguments = [str(method_models / "experts"), *COMMON, "--max-num-seqs", "4", "--data-parallel-size", "2"]
    arguments += ["--dsd-config", str(config), "--api-key", API_KEY, "--speculative-config", json.dumps(NGRAM)]
    server = Server(folder, arguments, {"VLLM_CPU_OMP_THREADS_BIND": "nobind"})
    try:
        yield server.wait_healthy()
    finally:
        server.stop()


@pytest.mark.long
def test_status_and_log_say_why(refused: Server) -> None:
    status = refused.status()
    assert (status["mode"], status["lastError"]["message"]) == ("off", MOE_DATA_PARALLEL.reason)
    assert MOE_DATA_PARALLEL.reason in refused.log.read_text()


@pytest.mark.long
def test_put_is_refused(refused: Server) -> None:
    body = {"revision": {"owner": "o", "number": 1}, "ranges": wire([(1, 64, 1)])}
    answer = refused.client.put("/dsd/v1/schedule", json=body, headers={"Authorization": f"Bearer {SECRET}"})
    assert answer.status_code == 422
    assert answer.json()["detail"] == f"the schedule changes only with a restart: {MOE_DATA_PARALLEL.reason}"


VLLM_SERVE = "import sys; sys.argv[1:1] = ['serve']; from vllm.entrypoints.cli.main import main; main()"

RESOLVE = """
import os
os.environ["VLLM_PLUGINS"] = "dsd"
from vllm import EngineArgs
from vllm.plugins import load_general_plugins
from dsd_runtime import resolved
load_general_plugins()
arguments = {{"dtype": "float32", "max_model_len": 512, "enforce_eager": True, **{arguments!r}}}
config = EngineArgs(speculative_config={speculative!r}, **arguments).create_engine_config()
assert resolved.refusal(config) == {reason!r}, resolved.refusal(config)
assert not resolved.has_superset(config)
"""


@pytest.mark.parametrize(
    ("target", "option", "topology"),
    [
        ("experts", {"data_parallel_size": 2}, MOE_DATA_PARALLEL),
        ("hybrid", {"data_parallel_size": 1}, HYBRID_ON_CPU),
        ("mtp", {"pipeline_parallel_size": 2}, PIPELINE_PARALLEL),
    ],
)
def test_what_vllm_resolves_is_recognised(
    target: str, option: dict[str, int], topology: Topology, prober: Prober, method_models: Path
) -> None:
    """vLLM's own configuration of such an engine, without the engine."""
    arguments = {"model": str(method_models / target), **option}
    program = RESOLVE.format(arguments=arguments, speculative=HYBRID_NGRAM, reason=topology.reason)
    outcome = prober.run(Case(program=program))
    assert outcome.error == "", outcome.log[-3000:]


@pytest.mark.long
@pytest.mark.parametrize("command", ["dsd-serve", "vllm serve"])
def test_pipeline_does_not_start_with_us_or_without(command: str, models: Path, tmp_path: Path) -> None:
    """vLLM 0.32 looks for the drafter on every stage, and only the last one has it (`initialize_kv_cache_tensors` of
    `v1/worker/gpu_model_runner.py`), before there is a scheduler that could say our reason.

    Where this fails vLLM has mended it, and a pipeline can have the tests above.
    """
    program = "from dsd_runtime.serve import main; main()" if command == "dsd-serve" else VLLM_SERVE
    arguments = [str(models / "target"), *COMMON, "--max-num-seqs", "4", "--pipeline-parallel-size", "2"]
    arguments += ["--host", "127.0.0.1", "--port", str(free_port()), "--speculative-config", json.dumps(NGRAM)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout[-3000:]
    assert "object has no attribute 'drafter'" in done.stdout


@pytest.mark.long
def test_hybrid_on_a_cpu_is_wrong_without_us_too(prober: Prober, method_models: Path) -> None:
    """With one K for good. Where this fails vLLM has mended it, and its CPU build can prove more."""
    path = str(method_models / "hybrid")
    reference, alone = prober.run(Case(path)), prober.run(Case(path, HYBRID_NGRAM, plugin=False))
    assert (reference.error, alone.error) == ("", "")
    assert alone.outputs != reference.outputs
