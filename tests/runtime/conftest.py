"""Fixtures of the runtime's tests: the tiny models, and one real ngram engine that the `engine` tests share."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from tests.runtime import tokens
from tests.runtime.examples import OWNER
from tests.runtime.method_probe import Case, Outcome, Prober
from tests.runtime.server import API_KEY, Server
from tools.cluster.paths import cache_root
from tools.models import tiny, tiny_methods

Triples = list[tuple[int, int, int]]

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4}
FIRST: Triples = [(1, 4, 3), (5, 64, 1)]
COMMON = ("--served-model-name", "tiny", "--enforce-eager", "--dtype", "float32", "--max-model-len", "512")


@pytest.fixture(scope="session", autouse=True)
def _sockets() -> Iterator[None]:
    """A place for the sockets between vLLM's processes: an engine that is killed leaves them behind.

    Not in pytest's own folders: a socket's path has at most 107 characters (unix(7)).
    """
    with TemporaryDirectory(prefix="dsd-sockets-") as place:
        os.environ["VLLM_RPC_BASE_PATH"] = place
        yield
        del os.environ["VLLM_RPC_BASE_PATH"]


@pytest.fixture(scope="session")
def models() -> Path:
    """The tiny models, made once per machine."""
    return tiny.make(cache_root() / "models" / "tiny")


@pytest.fixture(scope="session")
def method_models(models: Path) -> Path:
    """Tiny models for the methods and the kinds of targets that `models` has none for."""
    return tiny_methods.make(models, cache_root() / "models" / "tiny-methods")


@pytest.fixture(scope="session")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prober]:
    """Runs engines of any method, each in a process of its own."""
    prober = Prober(tmp_path_factory.mktemp("methods"))
    try:
        yield prober
    finally:
        prober.close()


@pytest.fixture(scope="session")
def without(prober: Prober, models: Path) -> Outcome:
    """The target without speculative decoding: what every method's outputs must equal."""
    outcome = prober.run(Case(str(models / "target")))
    assert outcome.error == "", outcome.log[-3000:]
    return outcome


def wire(triples: Triples) -> list[dict[str, int]]:
    """Ranges as JSON has them."""
    return [{"startBatchSize": a, "endBatchSize": b, "numSpeculativeTokens": k} for a, b, k in triples]


@dataclass
class Engine:
    """The shared engine, its config file, and the key that signs tokens for it."""

    server: Server
    config: Path
    key: tokens.PrivateKey
    first_status: dict[str, Any] = field(default_factory=dict)
    _number: int = 5

    def write_config(self, number: int, triples: Triples) -> None:
        """Replace the config file, in one step."""
        content = {
            "revision": {"owner": OWNER, "number": number},
            "ranges": wire(triples),
            "auth": tokens.auth_section(tokens.public_jwk(self.key, "one")),
        }
        partial = self.config.with_suffix(".partial")
        partial.write_text(json.dumps(content))
        partial.replace(self.config)

    def next_number(self) -> int:
        """A revision number above all before it, whoever used them: `dsd schedule set` counts in milliseconds."""
        revision = self.server.status()["schedule"].get("revision") or {"number": 0}
        self._number = max(self._number, revision["number"]) + 1
        return self._number

    def count_on(self, number: int) -> None:
        """Let the next number be above this one, which somebody else used."""
        self._number = max(self._number, number)

    def put(self, body: Any, token: str | None = "good") -> httpx.Response:
        """PUT a body; `token` "good" stands for one that may write."""
        bearer = tokens.mint(self.key) if token == "good" else token
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        content = body if isinstance(body, bytes) else json.dumps(body)
        return self.server.client.put("/dsd/v1/schedule", content=content, headers=headers)

    def swap(self, triples: Triples) -> dict[str, Any]:
        """Put a new schedule that must be accepted; returns the status after it."""
        body = {"revision": {"owner": OWNER, "number": self.next_number()}, "ranges": wire(triples)}
        answer = self.put(body)
        assert answer.status_code == 200, answer.text
        status: dict[str, Any] = answer.json()
        return status

    def in_use(self) -> Triples:
        """The schedule in use."""
        ranges = self.server.status()["schedule"]["ranges"]
        return [(r["startBatchSize"], r["endBatchSize"], r["numSpeculativeTokens"]) for r in ranges]


@pytest.fixture(scope="session")
def engine(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A running ngram engine behind an API key and a root path, with a Kubernetes-like key set in its config file."""
    folder = tmp_path_factory.mktemp("engine")
    config = folder / "config.yaml"
    arguments = [str(models / "target"), *COMMON, "--max-num-seqs", "16", "--dsd-config", str(config)]
    arguments += ["--speculative-config", json.dumps(NGRAM), "--api-key", API_KEY, "--root-path", "/llm"]
    engine = Engine(None, config, tokens.new_ec())  # type: ignore[arg-type]
    engine.write_config(5, FIRST)
    engine.server = Server(folder, arguments)
    try:
        engine.server.wait_healthy()
        engine.first_status = engine.server.status()
        yield engine
    finally:
        engine.server.stop()
