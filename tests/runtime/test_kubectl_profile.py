"""`kubectl dsd profile` and `top` against a real vLLM: only the Kubernetes around it is missing.

The schedule goes to the engine over its own HTTP route, where `profile` would patch the resource.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dsd_runtime.schedule import Ranges, from_triples, to_triples
from kubectl_dsd.cluster import Cluster, Json
from kubectl_dsd.profile import model
from kubectl_dsd.profile.engines import Engine as Measured
from kubectl_dsd.profile.engines import Engines
from kubectl_dsd.profile.load import Load
from kubectl_dsd.profile.plan import Plan
from kubectl_dsd.profile.progress import Progress
from kubectl_dsd.profile.prompts import Prompt, built_in
from kubectl_dsd.profile.results import Results, Subject
from kubectl_dsd.profile.streams import Connection, RequestFailure, Settings
from kubectl_dsd.profile.sweep import Sweep
from kubectl_dsd.top.samples import Watcher
from kubectl_dsd.wanted import Schedule
from tests.runtime.conftest import FIRST, Engine
from tests.runtime.server import API_KEY

PLAN = Plan(concurrencies=(1, 4), ks=(0, 4), rounds=2, duration=1.0, warm_up=0.5)
LARGEST = 16

pytestmark = pytest.mark.engine


@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    """Where the shared engine listens; its schedule is as before afterwards."""
    yield str(engine.server.client.base_url).rstrip("/")
    engine.swap(FIRST)


@pytest.fixture
def measured(address: str) -> Engines:
    """The engine as `profile` sees it."""
    scrape = Connection(address, API_KEY)
    return Engines([Measured("pod", address, 1, lambda: scrape.get("/metrics").decode())], frozenset())


def settings_of(address: str, key: str | None = API_KEY) -> tuple[Settings, tuple[Prompt, ...]]:
    """The engine's model and the built-in prompts as it takes them."""
    connection = Connection(address, key)
    found = model.served(connection, Settings("", max_tokens=32, api_key=key))
    return found, model.usable(built_in(), connection, found)


def test_a_sweep_measures_each_k_at_each_concurrency(engine: Engine, measured: Engines, address: str) -> None:
    settings, prompts = settings_of(address)

    def use(ranges: Ranges) -> None:
        engine.swap([(a, b, k) for a, b, k in to_triples(ranges)])

    sweep = Sweep(use, measured, prompts, settings, LARGEST)
    with Progress(len(PLAN.cells()), PLAN.seconds()) as progress:
        sweep.run(PLAN, progress)

    subject = Subject("here", "tiny", "ngram", ("pod",), 1, LARGEST, Schedule(from_triples(FIRST)))
    results = Results(subject, PLAN, tuple(sweep.samples))
    assert (settings.model, settings.limit) == ("tiny", 512)
    assert results.rounds == 2
    assert [s.cell for s in results.all_samples] == PLAN.cells()
    for sample in results.samples:
        assert sample.at_k > 0.9, sample
        assert sample.rates.batch_size is not None
        assert 0.6 * sample.cell.concurrency <= sample.rates.batch_size <= sample.cell.concurrency, sample
        assert "shared" not in {remark.kind for remark in sample.remarks}, sample
    # One sample of a busy machine may be a handful of tokens, none of them drafted.
    drafted = {sample.cell.k for sample in results.samples if sample.rates.acceptance is not None}
    assert drafted == {cell.k for cell in PLAN.cells()} - {0}
    assert results.best.ranges[-1].end_batch_size == LARGEST


def test_top_shows_what_the_engine_does(engine: Engine, address: str) -> None:
    settings, prompts = settings_of(address)
    engine.swap([(1, LARGEST, 3)])
    watcher = Watcher(Direct(address), lambda: [RESOURCE])

    with Load([address], 4, prompts, settings) as load:
        load.wait_started()
        watcher.look()
        load.wait(1.0)
        (pod,) = watcher.look().pods

    assert (pod.state, pod.tokens, pod.note) == ("serving", (3,), "")
    assert pod.running is not None
    assert pod.waiting is not None
    assert 1 <= pod.running + pod.waiting <= 4, "a stream may be between two of its requests"
    assert pod.kv_cache is not None
    assert 0 < pod.kv_cache < 1
    assert pod.rates is not None
    assert pod.rates.tokens_per_second > 0
    assert pod.rates.tokens_per_request is not None
    assert 1 <= pod.rates.tokens_per_request <= 4
    assert pod.rates.acceptance is not None
    assert [s.hash for s in pod.schedules] == [engine.server.status()["schedule"]["hash"]]


RESOURCE = {"metadata": {"namespace": "here", "name": "tiny"}}


class Direct(Cluster):
    """The API server's proxy, without the API server."""

    def __init__(self, address: str) -> None:
        self._connection = Connection(address)

    def pods(self, deployment: Mapping[str, Any]) -> list[Json]:  # noqa: ARG002 - there is one
        """The one pod."""
        state = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return [{"metadata": {"namespace": "here", "name": "pod", "uid": "1"}, "status": state}]

    def pod_get(self, namespace: str, pod: str, path: str, port: int = 0, timeout: float = 0) -> bytes:  # noqa: ARG002
        """Straight from the engine."""
        return self._connection.get(path)


def test_other_clients_are_noticed(measured: Engines, address: str) -> None:
    settings, prompts = settings_of(address)
    sweep = Sweep(lambda _: None, measured, prompts, settings, LARGEST)

    with Load([address], 6, prompts, settings) as strangers:
        strangers.wait_started()
        with Progress(1, 1.0) as progress:
            sweep.run(Plan((2,), (0,), 1, 1.5, 0.0), progress)

    (sample,) = sweep.samples
    assert "shared" in {remark.kind for remark in sample.remarks}, sample


def test_a_missing_key_is_told_before_anything_starts(address: str) -> None:
    with pytest.raises(RequestFailure) as refused:
        settings_of(address, key=None)
    assert refused.value.status == 401
    assert "--api-key" in refused.value.hint
