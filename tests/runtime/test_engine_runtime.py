"""One engine core's side without vLLM: which schedule it begins with, and what it reports.

In processes of their own: prometheus_client chooses its multiprocess mode at import and registers each series once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, os, shutil, sys, time
from prometheus_client import CollectorRegistry, multiprocess
from dsd_runtime.engine import EngineRuntime
from tests.runtime.examples import envelope, ranges
runtime = EngineRuntime(envelope(), {}, ranges((1, 16, 4)), {"model_name": "m", "engine": "0"})
if os.environ.get("LOSE_METRICS"):
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"])
answers = [runtime.put(body, str(n)) for n, body in enumerate(sys.argv[1:])]
while os.environ.get("LOSE_METRICS") and not runtime.status()["faults"]:
    time.sleep(0.01)
found = {"status": runtime.status(), "answers": answers, "k": runtime.choose(3), "table": runtime.static_table()}
registry, found["samples"] = CollectorRegistry(), {}
if not os.environ.get("LOSE_METRICS"):
    multiprocess.MultiProcessCollector(registry)
for sample in (s for family in registry.collect() for s in family.samples if "source" in s.labels):
    found["samples"].setdefault(sample.name, {})[sample.labels["source"]] = sample.value
print(json.dumps(found))
"""
UNDONE = """
import json, os, time
from pathlib import Path
from dsd_runtime import config_file
from dsd_runtime.engine import EngineRuntime
from tests.runtime.examples import envelope, ranges

config_file.POLL_SECONDS = 0.01
path = Path(os.environ["DSD_CONFIG"])
runtime = EngineRuntime(envelope(), {}, ranges((1, 16, 4)), {"model_name": "m", "engine": "0"})
body = {"revision": {"owner": "o", "number": 7},
        "ranges": [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": 1}]}
runtime.put(json.dumps(body), "change")
path.with_suffix(".new").write_text(json.dumps(body))
path.with_suffix(".new").replace(path)
looked = []
runtime._schedule_metrics.count_update = lambda source, result: looked.append(str(result))
while "unchanged" not in looked:
    time.sleep(0.01)
runtime.roll_back("change")
while looked[-1] != "applied":
    time.sleep(0.01)
print(json.dumps({"source": runtime.status()["schedule"]["source"], "k": runtime.choose(3), "looked": looked}))
"""
REFUSED = """
import json, os, sys
from dsd_runtime.engine import EngineRuntime
from tests.runtime.examples import envelope, ranges

runtime = EngineRuntime(envelope(), {}, ranges((1, 16, 4)), {"model_name": "m", "engine": "0"})
results = []
for n, body in enumerate(sys.argv[1:]):
    results.append(runtime.put(body, str(n))["result"])
    if results[-1] != "applied":
        runtime.roll_back(str(n))
        runtime._watcher.poll()
print(json.dumps({"results": results, "schedule": runtime.status()["schedule"]}))
"""
BURST = """
import json, logging, sys, time
from prometheus_client import CollectorRegistry, multiprocess
from dsd_runtime.engine import EngineRuntime
from tests.runtime.examples import envelope, ranges

lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("vllm.dsd.engine").setLevel("INFO")
logging.getLogger("vllm.dsd.engine").addHandler(handler)

def shown():
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    samples = [s for family in registry.collect() for s in family.samples]
    return [s.labels["revision"] for s in samples if s.name == "dsd_schedule_revision_info"]

runtime = EngineRuntime(envelope(), {}, ranges((1, 16, 4)), {"model_name": "m", "engine": "0"})
taken = [runtime.put(body, str(n))["status"]["schedule"]["revision"]["number"] for n, body in enumerate(sys.argv[1:])]
deadline = time.monotonic() + 30
while shown() != [str(taken[-1])] and time.monotonic() < deadline:
    time.sleep(0.01)
print(json.dumps({"taken": taken, "shown": shown(), "lines": lines}))
"""
GOOD = "ranges: [{startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 2}]"


def run(
    folder: Path, content: str | None, *puts: dict[str, Any], program: str = PROGRAM, **variables: str
) -> dict[str, Any]:
    """Make it with a config file, send PUT bodies; what came of it."""
    path, metrics = folder / "config.yaml", folder / "metrics"
    metrics.mkdir(exist_ok=True)
    if content is not None:
        path.write_text(content)
    environment = {**os.environ, "DSD_CONFIG": str(path), "PROMETHEUS_MULTIPROC_DIR": str(metrics), **variables}
    environment["PYTHONPATH"] = os.pathsep.join(["runtime", "."])
    command = [sys.executable, "-c", program, *map(json.dumps, puts)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def put(number: int, k: int) -> dict[str, Any]:
    """A PUT body."""
    ranges = [{"startBatchSize": 1, "endBatchSize": 8, "numSpeculativeTokens": k}]
    return {"revision": {"owner": "o", "number": number}, "ranges": ranges}


def test_file_is_in_force_from_the_beginning(tmp_path: Path) -> None:
    found = run(tmp_path, GOOD)
    assert (found["k"], found["status"]["schedule"]["source"]) == (2, "file")
    assert "lastError" not in found["status"]


def test_missing_file_leaves_the_start_schedule_and_is_reported(tmp_path: Path) -> None:
    found = run(tmp_path, None)
    assert (found["k"], found["status"]["schedule"]["source"]) == (4, "start")
    assert "cannot be read" in found["status"]["lastError"]["message"]
    assert [fault["source"] for fault in found["status"]["faults"]] == ["file"]
    assert (found["samples"]["dsd_fault"]["file"], found["samples"]["dsd_fault"]["metrics"]) == (1, 0)
    assert found["samples"]["dsd_schedule_updates_total"] == {"file": 1}


def test_impossible_file_leaves_the_start_schedule_and_is_reported(tmp_path: Path) -> None:
    found = run(tmp_path, GOOD.replace("2}", "9}"))
    assert found["k"] == 4
    assert "above the maximum" in found["status"]["lastError"]["message"]
    assert "above the maximum" in found["status"]["faults"][0]["message"]
    assert found["samples"]["dsd_schedule_updates_total"] == {"file": 1}, "counted once"


def test_fault_of_the_file_outlasts_a_put_that_is_applied(tmp_path: Path) -> None:
    status = run(tmp_path, "ranges: [", put(1, 3))["status"]
    assert status["schedule"]["source"] == "http"
    assert "lastError" not in status
    assert "not valid YAML" in status["faults"][0]["message"]


def test_refused_put_is_reported_until_one_is_applied(tmp_path: Path) -> None:
    found = run(tmp_path, GOOD, put(1, 9))
    assert found["status"]["lastError"]["source"] == "http"
    found = run(tmp_path, GOOD, put(1, 9), put(1, 3))
    assert "lastError" not in found["status"]
    assert [a["result"] for a in found["answers"]] == ["invalid", "applied"]
    assert found["answers"][1]["status"]["schedule"]["ranges"][0]["numSpeculativeTokens"] == 3


def test_stale_put_is_no_error_of_the_engine(tmp_path: Path) -> None:
    found = run(tmp_path, GOOD, put(5, 3), put(4, 1))
    assert [a["result"] for a in found["answers"]] == ["applied", "stale"]
    assert "lastError" not in found["status"]


def test_schedule_counts_even_where_the_metrics_cannot_be_written(tmp_path: Path) -> None:
    found = run(tmp_path, GOOD, put(5, 3), LOSE_METRICS="yes")
    assert found["answers"][0]["status"]["schedule"]["revision"]["number"] == 5
    assert found["k"] == 3
    assert [fault["source"] for fault in found["status"]["faults"]] == ["metrics"]


def test_file_that_was_seen_while_an_undone_put_was_in_force_counts(tmp_path: Path) -> None:
    """Regression: it had the revision of that PUT, changed nothing then, and was not looked at again."""
    found = run(tmp_path, GOOD, program=UNDONE)
    assert found == {"source": "file", "k": 1, "looked": ["unchanged", "applied"]}


def test_schedule_in_use_as_a_static_table(tmp_path: Path) -> None:
    ranges = GOOD.replace("8,", "2,").replace("]", ", {startBatchSize: 5, endBatchSize: 6, numSpeculativeTokens: 1}]")
    assert run(tmp_path, ranges)["table"][:8] == [2, 2, 2, 2, 2, 1, 1, 1]


def test_refused_put_does_not_bring_back_a_file_without_a_revision(tmp_path: Path) -> None:
    """What the route rolls back after a refusal was never in force, and what came last counts."""
    found = run(tmp_path, GOOD, put(5, 3), put(4, 1), put(6, 99), program=REFUSED)
    assert found["results"] == ["applied", "stale", "invalid"]
    assert (found["schedule"]["source"], found["schedule"]["revision"]["number"]) == ("http", 5)


def test_a_burst_of_changes_is_obeyed_at_once_and_shown_at_its_end(tmp_path: Path) -> None:
    """A hundred changes in a second must cost the engine neither a hundred lines nor a hundred files."""
    found = run(tmp_path, None, *(put(number, 1 + number % 4) for number in range(1, 101)), program=BURST)
    assert found["taken"] == list(range(1, 101)), "each is in use when its PUT is answered"
    assert found["shown"] == ["100"]
    assert "revision 100)" in found["lines"][-1]
    assert len(found["lines"]) < 50
