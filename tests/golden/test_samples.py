"""Every sample renders to the manifests that are checked in. After a change: pytest tests/golden --update-golden."""

from pathlib import Path
from typing import Final

import pytest

from dsd_operator.render.preflight import problems
from dsd_operator.render.restricted import restricted_violations
from tests.golden.manifest_text import manifest_text
from tests.golden.samples import SAMPLES, load, pod_spec, render

MANIFESTS: Final = Path(__file__).parent / "manifests"
EACH: Final = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)


@EACH
def test_the_manifests_are_the_golden_ones(sample: Path, request: pytest.FixtureRequest) -> None:
    rendered = manifest_text(render(sample).values())
    golden = MANIFESTS / sample.name
    if request.config.getoption("--update-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(rendered)
    assert golden.read_text() == rendered, "if the change is meant: pytest tests/golden --update-golden"


def test_there_is_no_golden_file_without_its_sample() -> None:
    assert {path.name for path in MANIFESTS.iterdir()} == {path.name for path in SAMPLES}


@EACH
def test_a_sample_is_sound_and_its_pod_restricted(sample: Path) -> None:
    assert problems(load(sample)) == []
    assert restricted_violations(pod_spec(sample)) == []


@EACH
def test_what_a_sample_schedules_is_prepared(sample: Path) -> None:
    spec = load(sample).spec
    prepared = spec.drafter.prepared_tokens or range(spec.drafter.num_speculative_tokens + 1)
    assert {r.num_speculative_tokens for r in spec.schedule} <= set(prepared)


@EACH
def test_the_readme_lists_every_sample(sample: Path) -> None:
    assert f"({sample.name})" in (sample.parent / "README.md").read_text()
