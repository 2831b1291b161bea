"""What docs/how-to/upgrades.md says of a pod's end is what the runtime and the operator do."""

from typing import Final

import yaml

from dsd_runtime.serve import DRAIN_SECONDS, SHUTDOWN
from tests.docs.blocks import blocks
from tests.unit.resources import pod_spec, resource
from tools.cluster.paths import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "how-to" / "upgrades.md"


def _grace() -> int:
    return int(pod_spec(resource())["terminationGracePeriodSeconds"])


def test_the_times_are_those_that_are_set() -> None:
    text = " ".join(PAGE.read_text().split())
    assert f"those that are open have {DRAIN_SECONDS} seconds to end" in text
    assert f"A pod gets {_grace()} seconds in all" in text
    assert f"the engine has the other {_grace() - DRAIN_SECONDS} to end itself" in text


def test_the_example_leaves_the_engine_as_long() -> None:
    (block,) = (b for b in blocks(PAGE) if SHUTDOWN in b.text)
    spec = yaml.safe_load(block.text)
    (option,) = spec["engine"]["extraArgs"]
    drain = int(option.removeprefix(f"{SHUTDOWN}="))
    assert spec["podTemplate"]["spec"]["terminationGracePeriodSeconds"] - drain == _grace() - DRAIN_SECONDS
