"""The oracles complain of what they are there for, and of nothing else."""

from dataclasses import replace
from typing import Any

from dsd_operator.status.reasons import Reason
from tests.campaign.judge import Fresh, Turn, judge
from tests.campaign.picture import Picture, differences
from tests.unit.resources import BASE

START: dict[str, Any] = {**BASE["spec"], "replicas": 0}
HEALTHY = {"status": "True", "reason": "Ready", "message": "m"}
INVALID = {"status": "False", "reason": Reason.INVALID_SPEC, "message": "m"}


def deployed(template: str = "t", schedule: str = "s", rolls: int = 1, **changes: Any) -> Picture:
    children = {"Deployment": {"spec": {"template": template}}, "ConfigMap": {"data": schedule}}
    made = Picture(1, HEALTHY, {"conditions": []}, children, rolls, {"Deployment": template + schedule})
    return replace(made, **changes)


def complaints(before: Picture, after: Picture, fresh: Picture | None, **spec: Any) -> list[str]:
    reached = {"smoothing": "smoothing.dwellSteps", "model": "model.name"}.get("".join(spec), "")
    return list(judge(Turn(START, before, START | spec, after, Fresh(fresh), reaches=reached)))


def refused() -> list[str]:
    turn = Turn(START, deployed(), START, deployed(), Fresh(None, "spec.model: no"), "spec.model: no", "model.name")
    return list(judge(turn))


def test_a_change_of_the_envelope_that_rolls_once_is_right() -> None:
    assert complaints(deployed(), deployed("u", rolls=2), deployed("u"), model={"name": "a/c"}) == []


def test_a_hot_change_that_reaches_the_config_map_is_right() -> None:
    assert complaints(deployed(), deployed(schedule="z"), deployed(schedule="z"), smoothing={"dwellSteps": 2}) == []


def test_a_field_that_is_left_over_shows() -> None:
    (found,) = complaints(deployed("u"), deployed("u"), deployed())
    assert found.startswith("Deployment.spec.template")


def test_a_status_that_is_left_over_shows() -> None:
    (found,) = complaints(deployed(), deployed(status={"conditions": ["old"]}), deployed())
    assert found.startswith("status.conditions")


def test_a_change_that_nothing_shows_is_a_field_that_is_ignored() -> None:
    (found,) = complaints(deployed(), deployed(), deployed(), smoothing={"dwellSteps": 2})
    assert "documented as 'hot'" in found
    (found,) = complaints(deployed(), deployed(), deployed(), model={"name": "a/c"})
    assert "documented as 'rolled'" in found


def test_a_template_that_rolls_twice_or_for_a_hot_field_shows() -> None:
    (found,) = complaints(deployed(), deployed("u", rolls=3), deployed("u"), model={"name": "a/c"})
    assert "rolled 2 times" in found
    found = complaints(deployed(), deployed("u", "z", rolls=2), deployed("u", "z"), smoothing={"dwellSteps": 2})[0]
    assert "the envelope is the same" in found


def test_what_a_refused_value_leaves_behind_shows() -> None:
    (found,) = list(judge(Turn(START, deployed(), START, deployed(schedule="z"), Fresh(None, "no"), "no")))
    assert "refused value changed something" in found


def test_what_a_fresh_deployment_may_not_have_shows() -> None:
    (found,) = complaints(deployed(), deployed(), None)
    assert "what a fresh one may not" in found


def test_a_good_value_that_is_not_taken_shows() -> None:
    assert "refuses a good value" in refused()[0]
    sick = deployed(ready=INVALID)
    assert "does not work" in complaints(deployed(), sick, sick, model={"name": "a/c"})[0]


def test_a_spec_that_cannot_be_carried_out_leaves_the_pods_alone() -> None:
    fresh = deployed(ready=INVALID, children={"ConfigMap": {"data": "s"}}, rolls=0)
    assert complaints(deployed(), deployed(ready=INVALID), fresh) == []
    found = complaints(deployed(), deployed(ready=INVALID, children=fresh.children, rolls=1), fresh)
    assert found[0].startswith("Deployment")


def test_a_deployment_that_never_settles_shows() -> None:
    (found,) = complaints(deployed(), deployed(ready={"status": "False", "reason": "RollingOut"}), deployed())
    assert "never settled" in found


def test_differences_name_their_places() -> None:
    assert list(differences({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]})) == ["a[1].b: 2 is not 3"]
    assert list(differences({"a": 1}, {"a": 1})) == []
