"""What docs/how-to/rollouts.md says of a pod's end is what the runtime and the operator do."""

from typing import Final

from dsd_operator.render.lifecycle import END_SECONDS, PAUSE_SECONDS
from dsd_runtime.serve import DRAIN_SECONDS
from tests.unit.resources import pod_spec, resource
from tools.cluster.paths import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "how-to" / "rollouts.md"
DRAINS: Final = (0, 600)


def test_the_times_are_those_that_are_set() -> None:
    text = " ".join(PAGE.read_text().split())
    default = resource().spec.rollout.drain_timeout_seconds
    assert f"`rollout.drainTimeoutSeconds` ({default})" in text
    assert f"the engine has {END_SECONDS} seconds to end" in text
    assert f"a pod gets {PAUSE_SECONDS + END_SECONDS} seconds more than the time to drain" in text
    assert default == DRAIN_SECONDS, "with or without Kubernetes it is the same"


def test_the_grace_period_is_as_long_as_the_page_says() -> None:
    for drain in DRAINS:
        made = pod_spec(resource({"rollout.drainTimeoutSeconds": drain}))
        assert made["terminationGracePeriodSeconds"] == PAUSE_SECONDS + drain + END_SECONDS
