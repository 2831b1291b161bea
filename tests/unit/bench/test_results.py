"""The result files: their format, that `required` follows from `data`, and that the page shows them."""

import copy
import json
from typing import Any

import pytest
from pydantic import ValidationError

from bench import hotswap, report
from bench.results import RESULTS, Required, Result, environment, read, spread

FILES = sorted(path.stem for path in RESULTS.glob("*.json"))


def hotswap_data(samples: list[float], failed: int = 0) -> tuple[dict[str, Any], ...]:
    requests = {"condition": "requests", "requests": 1000, "failed": failed, "errors": []}
    return hotswap.row("load", samples), hotswap.row("idle", samples), requests


def result(samples: list[float], failed: int = 0) -> Result:
    data = hotswap_data(samples, failed)
    return Result(
        environment=environment({"vllm": "0.32.0"}),
        method=hotswap.METHOD,
        data=data,
        required=hotswap.required_of(data),
    )


def met(found: Result) -> dict[str, bool]:
    return {entry.name.split()[0]: entry.met for entry in found.required}


def test_a_fast_run_meets_everything() -> None:
    assert met(result([0.1] * 100)) == {"changes": True, "p50": True, "p95": True, "requests": True, "failed": True}


def test_each_requirement_can_fail() -> None:
    assert not met(result([0.1] * 99))["changes"]
    assert not met(result([0.31] * 100))["p50"]
    slow = met(result([0.1] * 94 + [1.1] * 6))
    assert (slow["p50"], slow["p95"]) == (True, False)
    assert not met(result([0.1] * 100, failed=1))["failed"]


def test_spread_is_taken_from_the_values() -> None:
    figures = spread([float(n) for n in range(101)])
    assert figures == {"min": 0.0, "p50": 50.0, "p95": 95.0, "max": 100.0}


def test_met_must_be_true_to_the_numbers() -> None:
    with pytest.raises(ValidationError, match="says else"):
        Required(name="x", value=2, unit="s", relation="<=", threshold=1, met=True)


def test_unknown_keys_are_refused() -> None:
    body = json.loads(result([0.1] * 100).model_dump_json())
    for path in ((), ("environment",), ("required", 0)):
        wrong = copy.deepcopy(body)
        at = wrong
        for key in path:
            at = at[key]
        at["extra"] = 1
        with pytest.raises(ValidationError, match="extra"):
            Result.model_validate(wrong)


def test_the_environment_is_this_machine() -> None:
    found = environment({"vllm": "0.32.0"})
    assert found.cpu
    assert found.cores >= 1
    assert found.memory > 0
    assert found.versions["vllm"] == "0.32.0"
    assert len(found.commit.removesuffix("-dirty")) >= 7


def test_the_page_shows_required_numbers_and_spreads() -> None:
    text = report.page({"hotswap": result([0.1] * 94 + [1.1] * 6)})
    assert "| p95 until the last pod acknowledges | 1.1 s | <= 1 | **no** |" in text
    assert "| load | 100 | 0.100 | 0.100 | 1.1 | 1.1 |" in text


@pytest.mark.parametrize("name", FILES)
def test_stored_results_are_valid(name: str) -> None:
    assert read(name).required


def test_the_stored_hotswap_result_follows_from_its_data() -> None:
    stored = read("hotswap")
    assert stored.required == hotswap.required_of(stored.data)
    for row in stored.data[:2]:
        assert row["seconds"] == spread(row["samples"])


def test_page_and_pictures_are_current() -> None:
    for path, text in report.files().items():
        assert path.read_text() == text, path
