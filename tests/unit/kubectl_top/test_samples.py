"""`top` over pods that come, go, restart, and cannot be asked. The API server is a stand-in that fails on demand."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from kubectl_dsd.cluster import Cluster, Json, Objects
from kubectl_dsd.errors import ApiFailure
from kubectl_dsd.top.command import top
from kubectl_dsd.top.samples import Look, Watcher
from kubectl_dsd.top.show import document, notes, table

DEPLOYMENT: dict[str, Any] = {"metadata": {"namespace": "team", "name": "demo"}}
POLICY = {"metadata": {"name": "deny-all", "namespace": "team"}, "spec": {"podSelector": {}}}


def pod(name: str, *, ready: bool = True, restarts: int = 0, phase: str = "Running") -> dict[str, Any]:
    """A pod with an address."""
    return {
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-of-{name}", "labels": {"app": "x"}},
        "status": {
            "phase": phase,
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"name": "engine", "restartCount": restarts}],
        },
    }


def page(emitted: float, mode: str = "on", batches: float | None = None) -> str:
    """A page with what this test needs. `batches` is not the steps where it is read in the middle of a change."""
    steps = emitted / 2
    counted = steps if batches is None else batches
    return f"""# TYPE dsd_plugin_info gauge
dsd_plugin_info{{mode="{mode}"}} 1
# TYPE dsd_num_speculative_tokens gauge
dsd_num_speculative_tokens{{engine="0"}} 2
# TYPE dsd_steps_total counter
dsd_steps_total{{k="2",concurrency="1"}} {steps}
# TYPE dsd_emitted_tokens_total counter
dsd_emitted_tokens_total{{k="2",concurrency="1"}} {emitted}
# TYPE dsd_step_batch_size histogram
dsd_step_batch_size_bucket{{le="+Inf"}} {counted}
dsd_step_batch_size_count {counted}
dsd_step_batch_size_sum {counted}
"""


class Server(Cluster):
    """What an API server says of pods and their pages; an ApiFailure is raised."""

    def __init__(self) -> None:
        self.present: list[Json] = []
        self.pages: dict[str, str | ApiFailure] = {}
        self.policies: list[Json] = []
        self.torn: list[str] = []
        """Pages that are given first, each once."""

    def pods(self, deployment: Mapping[str, Any]) -> list[Json]:  # noqa: ARG002 - there is one
        """The pods."""
        return self.present

    def pod_get(self, namespace: str, pod: str, path: str, port: int = 0, timeout: float = 0) -> bytes:  # noqa: ARG002
        """A pod's page, or its failure; an engine's status fails like its page."""
        found = self.torn.pop() if self.torn and path == "/metrics" else self.pages[pod]
        if isinstance(found, ApiFailure):
            raise found
        return found.encode() if path == "/metrics" else b'{"mode": "on"}'

    def list(self, kind: str, namespace: str | None, selector: str = "", fields: str = "") -> Objects:  # noqa: ARG002
        """The NetworkPolicies."""
        return self.policies

    def deployments(self, everywhere: bool = False) -> Objects:  # noqa: ARG002
        """The one."""
        return [DEPLOYMENT]


def watcher(server: Server) -> Watcher:
    """Over the one deployment."""
    return Watcher(server, lambda: [DEPLOYMENT])


def only(look: Look) -> dict[str, Any]:
    """The one pod of a look, as a program gets it."""
    (found,) = document(look)["pods"]
    return cast(dict[str, Any], found)


def test_the_second_look_has_rates() -> None:
    server = Server()
    server.present, server.pages = [pod("a")], {"a": page(100)}
    watch = watcher(server)

    first = only(watch.look())
    server.pages["a"] = page(160)
    second = only(watch.look())

    assert first["rates"] is None
    assert second["rates"]["tokensPerStep"] == 2
    assert second["rates"]["tokensPerSecond"] > 0
    assert (second["state"], second["numSpeculativeTokens"], second["note"]) == ("serving", [2], None)


@pytest.mark.parametrize(("torn", "size"), [(2, 1), (9, 0.5)], ids=["for-a-moment", "at-each-reading"])
def test_a_page_that_is_just_being_changed_is_read_again_but_not_for_ever(torn: int, size: float) -> None:
    server = Server()
    server.present, server.pages = [pod("a")], {"a": page(100)}
    watch = watcher(server)
    watch.look()

    server.pages["a"], server.torn = page(160), [page(160, batches=65)] * torn
    (row,) = watch.look().pods

    assert row.rates is not None
    assert row.rates.batch_size == size


def test_a_restarted_engine_has_no_rates_until_its_second_look() -> None:
    server = Server()
    server.present, server.pages = [pod("a")], {"a": page(100)}
    watch = watcher(server)
    watch.look()

    server.present, server.pages = [pod("a", restarts=1)], {"a": page(110)}
    after_restart = only(watch.look())
    server.pages = {"a": page(120)}

    assert after_restart["rates"] is None
    assert only(watch.look())["rates"] is not None


def test_pods_that_come_and_go_do_not_stop_it() -> None:
    server = Server()
    server.present, server.pages = [pod("a")], {"a": page(1), "b": page(2)}
    watch = watcher(server)
    watch.look()

    server.present = [pod("b"), pod("c", phase="Failed")]
    look = watch.look()

    assert [(p.pod, p.state) for p in look.pods] == [("b", "serving"), ("c", "ending")]
    assert look.rates() is None


def test_a_pod_that_starts_is_said_to_start() -> None:
    server = Server()
    server.present = [pod("a", ready=False)]
    server.pages = {"a": ApiFailure(503, "x", "", {"message": "dial tcp: connect: connection refused"})}

    found = only(watcher(server).look())

    assert found["state"] == "starting"
    assert found["note"].startswith("not serving yet")


def test_a_policy_in_the_way_is_named() -> None:
    server = Server()
    server.present, server.policies = [pod("a"), pod("b")], [POLICY]
    blocked = ApiFailure(
        503, "x", "", {"message": "error trying to reach service: dial tcp 10.0.0.1:8000: i/o timeout"}
    )
    server.pages = {"a": blocked, "b": page(1)}

    look = watcher(server).look()

    assert [p.state for p in look.pods] == ["blocked", "serving"]
    assert "blocked by the NetworkPolicy deny-all" in notes(look)[0]


def test_a_plugin_that_is_off_is_told() -> None:
    server = Server()
    server.present, server.pages = [pod("a")], {"a": page(1, mode="off")}

    assert only(watcher(server).look())["state"] == "plugin-off"


def test_the_table_has_a_row_per_pod_and_one_for_all() -> None:
    server = Server()
    server.present, server.pages = [pod("a"), pod("b")], {"a": page(1), "b": page(2)}
    look = watcher(server).look()

    assert table(look).row_count == 3
    assert len(table(look, everywhere=True).columns) == len(table(look).columns) + 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """The command's cluster: one deployment, one pod that serves and one that starts."""
    made = Server()
    made.present = [pod("a"), pod("b", ready=False)]
    made.pages = {"a": page(100), "b": ApiFailure(503, "x", "", {"message": "connect: connection refused"})}
    monkeypatch.setattr(Cluster, "connect", lambda _: made)
    return made


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(("form", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_one_sample_is_one_document(form: str, parse: Callable[[str], Any]) -> None:
    done = CliRunner().invoke(top, ["--once", "--interval", "0.2", "-o", form])

    assert done.exit_code == 0, done.output
    found = parse(done.stdout)
    assert [(p["pod"], p["state"]) for p in found["pods"]] == [("a", "serving"), ("b", "starting")]
    assert found["total"]["tokensPerSecond"] == 0


@pytest.mark.usefixtures("server")
def test_one_sample_is_a_table_with_what_is_wrong_below_it() -> None:
    done = CliRunner().invoke(top, ["--once", "--interval", "0.2"])

    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split()[:4] == ["POD", "K", "RUNNING", "WAITING"]
    assert lines[1].split()[:2] == ["a", "2"]
    assert "b: not serving yet" in done.stdout


@pytest.mark.usefixtures("server")
def test_a_name_and_all_namespaces_do_not_go_together() -> None:
    assert CliRunner().invoke(top, ["demo", "-A"]).exit_code == 2
