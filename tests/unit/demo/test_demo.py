"""The demo fits its sample: the claim, the model, a new schedule that the sample's engine can use and that differs."""

import json
from typing import Any

import pytest
import yaml

from dsd_runtime.schedule import Lookup, ScheduleRange, validate
from tools.cluster.paths import REPOSITORY
from tools.demo import earnings, parts, progress, story
from tools.demo.names import MODEL_CLAIM, RESOURCE, SAMPLE
from tools.models import smollm2

_METRICS = """\
# TYPE dsd_steps_total counter
dsd_steps_total{k="3",concurrency="4",engine="0"} 10
dsd_steps_total{k="3",concurrency="2",engine="0"} 5
dsd_steps_total{k="0",concurrency="2",engine="0"} 7
# TYPE dsd_emitted_tokens_total counter
dsd_emitted_tokens_total{k="3",concurrency="4",engine="0"} 30
dsd_emitted_tokens_total{k="0",concurrency="2",engine="0"} 7
# TYPE dsd_draft_tokens_total counter
dsd_draft_tokens_total{k="3",concurrency="4",engine="0"} 40
# TYPE dsd_accepted_tokens_total counter
dsd_accepted_tokens_total{k="3",concurrency="4",engine="0"} 20
"""


@pytest.fixture(scope="module")
def sample() -> dict[str, Any]:
    return dict(yaml.safe_load((REPOSITORY / SAMPLE).read_text()))


def test_the_sample_is_the_resource_that_the_demo_waits_for(sample: dict[str, Any]) -> None:
    assert sample["metadata"] == {"name": RESOURCE}


def test_the_sample_mounts_the_claim_that_the_demo_makes(sample: dict[str, Any]) -> None:
    pod = sample["spec"]["podTemplate"]["spec"]
    (volume,) = pod["volumes"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert volume["persistentVolumeClaim"]["claimName"] == MODEL_CLAIM
    assert sample["spec"]["model"]["name"] == f"{mount['mountPath']}/{smollm2.directory().name}"


def test_claim_and_volume_are_bound_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[str] = []
    monkeypatch.setattr(parts, "kubectl", lambda *_, stdin, **__: applied.append(stdin))
    monkeypatch.setattr(smollm2, "ensure", smollm2.directory)
    parts.apply_model()
    _, volume, claim = json.loads(applied[0])["items"]
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"] == parts.VOLUME
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"] == MODEL_CLAIM
    assert volume["spec"]["hostPath"]["path"] == str(smollm2.directory().parent)


def test_the_new_schedule_fits_the_sample_and_changes_what_the_load_sees(sample: dict[str, Any]) -> None:
    spec = sample["spec"]
    assert validate(story.NEW_SCHEDULE, spec["drafter"]["numSpeculativeTokens"]) == []
    before = Lookup.of([ScheduleRange.model_validate(r) for r in spec["schedule"]])
    after = Lookup.of(story.NEW_SCHEDULE)
    assert before(story.CONCURRENCY) != after(story.CONCURRENCY)


def test_earnings_sum_over_concurrency_and_engines() -> None:
    reading = earnings.Reading.of(_METRICS)
    assert reading.counters["dsd_steps_total"] == {"3": 15.0, "0": 7.0}


def test_earnings_since_an_earlier_reading(capsys: pytest.CaptureFixture[str]) -> None:
    before = earnings.Reading.of(_METRICS.replace("} 10", "} 0").replace("} 7", "} 0"))
    grown = earnings.Reading.of(_METRICS).since(before)
    assert grown.counters["dsd_steps_total"] == {"3": 10.0, "0": 7.0}
    earnings.show(earnings.Reading.of(_METRICS))
    header, k0, k3 = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["K", "steps", "tokens", "drafted"]
    assert k0.split() == ["0", "7", "7", "0", "0", "-", "1.00"]
    assert k3.split() == ["3", "15", "30", "40", "20", "50", "2.00"]


def test_a_condition_becomes_one_line() -> None:
    condition = {"type": "Ready", "status": "False", "reason": "Starting", "message": "0 of 1 pods are ready"}
    assert progress.conditions_of({"status": {"conditions": [condition]}}) == {
        "Ready": "Ready=False  Starting: 0 of 1 pods are ready"
    }
    assert progress.conditions_of({}) == {}
