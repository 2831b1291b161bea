"""The reference pages name every metric, every problem and no other."""

import re
from pathlib import Path

from dsd_runtime import catalogue, routes
from tools import generate_metrics

ROOT = Path(__file__).resolve().parents[2]


def page(name: str) -> str:
    """A page of docs/reference."""
    return (ROOT / "docs" / "reference" / name).read_text()


def test_every_metric_is_documented() -> None:
    """The page is generated from the catalogue, and a test on a real engine compares that with what /metrics shows."""
    assert page("metrics.md") == generate_metrics.render()
    described = re.findall(r"^\| `(dsd_[a-z_]+)`(?: \| \w+ \|)", page("metrics.md"), re.MULTILINE)
    assert described == [family.sample for family in catalogue.FAMILIES]


def test_every_problem_is_documented() -> None:
    described = re.findall(r"^\| (\d+) \| `urn:dsd:problem:([a-z-]+)`", page("http-api.md"), re.MULTILINE)
    assert {int(status): kind for status, kind in described} == {s: kind for s, (kind, _) in routes.TITLES.items()}
