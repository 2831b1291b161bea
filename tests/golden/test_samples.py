"""Every sample renders to the manifests that are checked in. After a change: pytest tests/golden --update-golden."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dsd_operator.render.preflight import problems
from dsd_operator.render.security import restricted_violations
from tests.golden.samples import SAMPLES, load, pod_spec, render

MANIFESTS: Final = Path(__file__).parent / "manifests"
EACH: Final = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)


class _Dumper(yaml.SafeDumper):
    """Long texts as blocks, lists indented, no anchors: made for reading a diff."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


@EACH
def test_the_manifests_are_the_golden_ones(sample: Path, request: pytest.FixtureRequest) -> None:
    rendered = yaml.dump_all(render(sample).values(), Dumper=_Dumper, sort_keys=False, width=120)
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
