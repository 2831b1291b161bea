"""The reference pages name every metric, every problem and no other."""

import re
from pathlib import Path

from dsd_runtime import metrics, routes

ROOT = Path(__file__).resolve().parents[2]


def page(name: str) -> str:
    """A page of docs/reference."""
    return (ROOT / "docs" / "reference" / name).read_text()


def test_every_metric_is_documented() -> None:
    source = Path(metrics.__file__).read_text()
    made = {name.removesuffix("_total") for name in re.findall(r'"(dsd_[a-z_]+)"', source)}
    described = re.findall(r"^\| `(dsd_[a-z_]+)`", page("metrics.md"), re.MULTILINE)
    assert {name.removesuffix("_total") for name in described} == made
    assert len(described) == len(set(described))


def test_every_problem_is_documented() -> None:
    described = re.findall(r"^\| (\d+) \| `urn:dsd:problem:([a-z-]+)`", page("http-api.md"), re.MULTILINE)
    assert {int(status): kind for status, kind in described} == {s: kind for s, (kind, _) in routes.TITLES.items()}
