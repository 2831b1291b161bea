"""Each constraint on the chart's values: helm takes what it should, and refuses the rest with the path and the reason.

Every value of values.yaml has its cases, so that a new one without an accept and a reject test fails here.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.chart import CHART, template
from tools.chart_values import VALUES, read
from tools.testbed import earlier

CASES: Final[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "chart_value_cases.yaml").read_text())
DIGEST: Final = f"sha256:{'a' * 64}"


def _param(path: str, value: Any, *more: str) -> Any:
    return pytest.param(path, value, *more, id=f"{path}={json.dumps(value)[:40]}")


ACCEPTED: Final = [_param(path, value) for path, case in CASES.items() for value in case["accepted"]]
REFUSED: Final = [_param(path, r["value"], r["words"]) for path, case in CASES.items() for r in case["refused"]]


def _given(path: str, value: Any) -> str:
    return f"{path}={json.dumps(value)}"


@pytest.mark.parametrize(("path", "value"), ACCEPTED)
def test_it_is_accepted(path: str, value: Any) -> None:
    done = template("--set-json", _given(path, value))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("path", "value", "words"), REFUSED)
def test_it_is_refused_in_plain_words(path: str, value: Any, words: str) -> None:
    done = template("--set-json", _given(path, value))
    assert done.returncode != 0
    assert words in done.stderr
    assert path in done.stderr or f"'/{path.replace('.', '/')}" in done.stderr


def test_every_value_has_its_cases() -> None:
    leaves = {value.name for value in read((CHART / VALUES).read_text()) if value.default is not None}
    assert CASES.keys() == leaves
    assert [path for path, case in CASES.items() if not (case["accepted"] and case["refused"])] == []


@pytest.mark.parametrize("section", ["image", "crds", "networkPolicy", "networkPolicy.egress", "reconcile"])
def test_a_misspelt_value_is_named(section: str) -> None:
    done = template("--set", f"{section}.enabeld=true")
    assert done.returncode != 0
    assert f"'/{section.replace('.', '/')}'" in done.stderr
    assert "additional properties 'enabeld' not allowed" in done.stderr


def test_a_second_replica_is_no_value() -> None:
    assert "additional properties 'replicaCount' not allowed" in template("--set", "replicaCount=2").stderr


@pytest.mark.parametrize(
    "section", ["image", "cache", "crds", "serviceAccount", "reconcile", "logging", "networkPolicy"]
)
def test_a_section_that_is_set_to_null_is_named(section: str) -> None:
    done = template("--set-json", f"{section}=null")
    assert re.search(f"missing propert(y|ies) '{section}'", done.stderr), done.stderr


@pytest.mark.skipif(bool(earlier.missing()), reason=earlier.missing() or "it is there")
def test_the_values_of_the_first_version_are_no_whole_set(tmp_path: Path) -> None:
    """`helm upgrade --reuse-values` puts the old chart's values in the place of the new one's."""
    old = earlier.extract(tmp_path / "old") / "charts" / CHART.name / VALUES
    chart = Path(shutil.copytree(CHART, tmp_path / "chart"))
    new, reused = (yaml.safe_load(path.read_text()) for path in (chart / VALUES, old))
    shutil.copy(old, chart / VALUES)
    done = template(chart=chart)
    assert done.returncode != 0
    for section in json.loads((chart / "values.schema.json").read_text())["required"]:
        assert (f"'{section}'" in done.stderr) is (section not in reused), done.stderr
    assert "nil pointer" not in done.stderr
    (chart / VALUES).write_text(yaml.safe_dump({**new, **reused}))
    assert template(chart=chart).returncode == 0, "with the rest, as --reset-then-reuse-values has it"


def test_one_way_to_pin_an_image() -> None:
    done = template("--set", f"image.tag=1@{DIGEST},image.digest={DIGEST}")
    assert "image.tag ends in a digest and image.digest is set: keep one of them" in done.stderr
