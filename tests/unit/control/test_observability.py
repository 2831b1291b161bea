"""Logs, metrics, health."""

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dsd_operator import logs
from dsd_operator.health import LATE_SECONDS, STUCK_SECONDS, Health
from dsd_operator.metrics import Metrics
from dsd_operator.reconcile.queue import Key
from dsd_operator.reconcile.watches import GRACE_SECONDS, Watches
from tests.unit.control.clock import FakeClock


@pytest.fixture
def root_logger() -> Iterator[None]:
    """Put the root logger back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("root_logger")
async def test_every_line_about_a_resource_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "INFO")
    log = logging.getLogger("test")

    async def in_a_task_of_its_own() -> None:
        log.info("inner")

    log.info("before")
    with logs.about("team-a", "demo"):
        log.info("outer %s", "line")
        await asyncio.create_task(in_a_task_of_its_own())
    log.info("after", extra={"k8s_ref": {"namespace": "n", "name": "from-kopf"}})
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["message"], line.get("namespace"), line.get("name")) for line in lines] == [
        ("before", None, None),
        ("outer line", "team-a", "demo"),
        ("inner", "team-a", "demo"),
        ("after", "n", "from-kopf"),
    ]


@pytest.mark.usefixtures("root_logger")
def test_an_exception_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "INFO")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("test").exception("it failed")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError: two\nlines" in json.loads(line)["exception"]


@pytest.mark.usefixtures("root_logger")
def test_text_carries_the_resource_too(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text", "INFO")
    with logs.about("team-a", "demo"):
        logging.getLogger("test").warning("careful")
    assert "WARNING test [team-a/demo]: careful" in capsys.readouterr().err


def status(ready: str, reason: str) -> dict[str, object]:
    return {"conditions": [{"type": "Ready", "status": ready, "reason": reason}]}


def samples(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(metrics.render()[0].decode())
    return {
        tuple(value for _, value in sorted(s.labels.items())): s.value
        for f in families
        for s in f.samples
        if s.name == name
    }


def test_a_condition_has_one_series_at_a_time() -> None:
    metrics = Metrics("1")
    metrics.set_status("a", "demo", status("False", "Starting"))
    metrics.set_status("a", "demo", status("True", "Ready"))
    metrics.set_status("b", "demo", status("False", "Starting"))
    assert samples(metrics, "dsd_operator_condition") == {
        ("demo", "a", "Ready", "True", "Ready"): 1,
        ("demo", "b", "Starting", "False", "Ready"): 1,
    }
    assert samples(metrics, "dsd_operator_managed_deployments") == {("true",): 1, ("false",): 1, ("unknown",): 0}


def test_pods_are_counted_as_the_status_counts_them() -> None:
    metrics = Metrics("1")
    pods = {"ready": "3/5", "schedule": {"podsTotal": 6, "podsApplied": 2, "podsUnknown": 1}}
    metrics.set_status("a", "demo", {**status("False", "RollingOut"), **pods})
    assert samples(metrics, "dsd_operator_replicas") == {("demo", "a"): 5}
    assert samples(metrics, "dsd_operator_ready_replicas") == {("demo", "a"): 3}
    assert samples(metrics, "dsd_operator_schedule_pods") == {
        ("demo", "a", "applied"): 2,
        ("demo", "a", "unknown"): 1,
        ("demo", "a", "out_of_sync"): 3,
    }
    metrics.remove("a", "demo")
    for name in ("replicas", "ready_replicas", "schedule_pods"):
        assert samples(metrics, f"dsd_operator_{name}") == {}


def test_series_go_with_the_resource() -> None:
    metrics = Metrics("1")
    metrics.set_status("a", "demo", status("True", "Ready"))
    metrics.remove("a", "demo")
    metrics.remove("a", "never-seen")
    assert samples(metrics, "dsd_operator_condition") == {}
    assert samples(metrics, "dsd_operator_managed_deployments") == {("true",): 0, ("false",): 0, ("unknown",): 0}


def test_no_label_is_one_that_a_scrape_adds() -> None:
    metrics = Metrics("1")
    metrics.set_status("a", "demo", status("True", "Ready"))
    metrics.api_request("GET", 200)
    families = text_string_to_metric_families(metrics.render()[0].decode())
    labels = {label for f in families for s in f.samples for label in s.labels}
    assert not labels & {"namespace", "pod", "job", "instance", "service", "container", "endpoint", "node"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watches(clock: FakeClock) -> Watches:
    return Watches(clock)


def thing(version: str, name: str = "demo") -> dict[str, object]:
    return {"kind": "DSDDeployment", "metadata": {"namespace": "a", "name": name, "resourceVersion": version}}


def test_a_watch_that_shows_what_passes_read_is_alive(watches: Watches, clock: FakeClock) -> None:
    watches.shown(thing("1"))
    watches.read(thing("1"))
    watches.read(thing("2"))
    watches.shown(thing("2"))
    clock.advance(10 * GRACE_SECONDS)
    assert watches.silent() == []


def test_a_watch_that_keeps_silent_is_found_out(watches: Watches, clock: FakeClock) -> None:
    watches.shown(thing("1"))
    watches.read(thing("2"))
    clock.advance(GRACE_SECONDS - 1)
    watches.read(thing("3"))
    assert watches.silent() == []
    clock.advance(2)
    assert watches.silent() == ["DSDDeployment a/demo"], "a newer version does not start the time anew"
    watches.shown(thing("3"))
    assert watches.silent() == []


def test_a_watch_that_is_ahead_of_a_slow_pass_is_alive(watches: Watches, clock: FakeClock) -> None:
    watches.shown(thing("10"))
    watches.read(thing("9"))
    clock.advance(10 * GRACE_SECONDS)
    assert watches.silent() == []


def test_a_child_without_its_label_is_not_expected(watches: Watches, clock: FakeClock) -> None:
    meta = {"namespace": "a", "name": "demo", "resourceVersion": "1"}
    watches.read({"kind": "ConfigMap", "metadata": meta})
    clock.advance(10 * GRACE_SECONDS)
    assert watches.silent() == []
    labels = {"app.kubernetes.io/managed-by": "dsd-operator"}
    watches.read({"kind": "ConfigMap", "metadata": {**meta, "labels": labels}})
    clock.advance(10 * GRACE_SECONDS)
    assert watches.silent() == ["ConfigMap a/demo"]
    watches.forget("a", "other", "demo")
    assert watches.silent() == []


def test_since_when_a_generation_is_known(watches: Watches, clock: FakeClock) -> None:
    def shown(version: str, generation: int) -> None:
        body = thing(version)
        body["metadata"] = {**body["metadata"], "generation": generation}  # type: ignore[dict-item]
        watches.shown(body)

    shown("1", 1)
    clock.advance(5)
    shown("2", 2)
    clock.advance(5)
    shown("3", 2)  # a change of the status
    assert watches.since("a", "demo", 2) == clock.now - 5
    assert watches.since("a", "demo", 3) == clock.now, "read before the watch showed it"


def test_what_is_gone_is_not_waited_for(watches: Watches, clock: FakeClock) -> None:
    watches.read(thing("1", "one"))
    watches.gone(thing("2", "one"))
    watches.read(thing("1", "two"))
    watches.forget("a", "two")
    clock.advance(10 * GRACE_SECONDS)
    assert watches.silent() == []


def test_health_knows_a_late_loop_a_stuck_pass_and_a_silent_watch(watches: Watches, clock: FakeClock) -> None:
    longest = [0.0]
    health = Health(clock, watches, lambda: longest[0])
    assert health.faults() == []
    longest[0] = STUCK_SECONDS + 1
    watches.read(thing("1"))
    clock.advance(max(LATE_SECONDS, GRACE_SECONDS) + 1)
    late, stuck, silent = health.faults()
    assert "event loop" in late
    assert "pass" in stuck
    assert "DSDDeployment a/demo" in silent


def test_ready_after_the_first_pass_of_every_resource(watches: Watches, clock: FakeClock) -> None:
    health = Health(clock, watches, lambda: 0.0)
    assert health.unready() == "the resources have not been listed yet"
    health.expect([Key("a", "one"), Key("a", "two")])
    health.finished(Key("a", "one"))
    health.finished(Key("a", "unknown"))
    assert health.unready() == "1 resources wait for their first pass"
    health.finished(Key("a", "two"))
    assert health.unready() is None


def test_ready_without_any_resource(watches: Watches, clock: FakeClock) -> None:
    health = Health(clock, watches, lambda: 0.0)
    health.expect([])
    assert health.unready() is None
