"""Engines whose K must not change: refused at start, in the real engine, with the reason where people look for it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsd_runtime.topology import HYBRID_ON_CPU, MOE_DATA_PARALLEL, PIPELINE_PARALLEL, Topology
from tests.runtime.conftest import COMMON, NGRAM, wire
from tests.runtime.method_probe import Case, Prober
from tests.runtime.server import API_KEY, Server
from tests.runtime.test_methods_honoured import NGRAM as HYBRID_NGRAM

pytestmark = pytest.mark.engine

SECRET = "sesame"
CASES = [
    pytest.param(
        ("experts", "--data-parallel-size", MOE_DATA_PARALLEL), id="moe-data-parallel", marks=pytest.mark.long
    ),
    pytest.param(("target", "--pipeline-parallel-size", PIPELINE_PARALLEL), id="pipeline", marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=CASES)
def refused(
    request: pytest.FixtureRequest, models: Path, method_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Topology]]:
    """A running engine of such a kind, with two ranks and a config file."""
    target, option, topology = request.param
    folder = tmp_path_factory.mktemp("refused")
    (folder / "token").write_text(SECRET)
    config = folder / "config.yaml"
    config.write_text(json.dumps({"ranges": wire([(1, 64, 2)]), "auth": {"tokenFile": "token"}}))
    path = models / "target" if target == "target" else method_models / target
    arguments = [str(path), *COMMON, "--max-num-seqs", "4", "--dsd-config", str(config), option, "2"]
    arguments += ["--api-key", API_KEY, "--speculative-config", json.dumps(NGRAM)]
    server = Server(folder, arguments, {"VLLM_CPU_OMP_THREADS_BIND": "nobind"})
    try:
        yield server.wait_healthy(), topology
    finally:
        server.stop()


def test_status_and_log_say_why(refused: tuple[Server, Topology]) -> None:
    server, topology = refused
    status = server.status()
    assert (status["mode"], status["lastError"]["message"]) == ("off", topology.reason)
    assert topology.reason in server.log.read_text()


def test_put_is_refused(refused: tuple[Server, Topology]) -> None:
    server, topology = refused
    body = {"revision": {"owner": "o", "number": 1}, "ranges": wire([(1, 64, 1)])}
    answer = server.client.put("/dsd/v1/schedule", json=body, headers={"Authorization": f"Bearer {SECRET}"})
    assert answer.status_code == 422
    assert answer.json()["detail"] == f"the schedule changes only with a restart: {topology.reason}"


def test_it_serves_all_the_same(refused: tuple[Server, Topology]) -> None:
    server, topology = refused
    if topology is MOE_DATA_PARALLEL:
        pytest.skip("vLLM's CPU build cannot: an idle rank's dummy batch ends in NotImplementedError, with us or not")
    assert len(server.complete("the cat sat on the mat and the cat", 16)) == 16


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
def test_hybrid_on_a_cpu_is_wrong_without_us_too(prober: Prober, method_models: Path) -> None:
    """With one K for good. Where this fails vLLM has mended it, and its CPU build can prove more."""
    path = str(method_models / "hybrid")
    reference, alone = prober.run(Case(path)), prober.run(Case(path, HYBRID_NGRAM, plugin=False))
    assert (reference.error, alone.error) == ("", "")
    assert alone.outputs != reference.outputs
