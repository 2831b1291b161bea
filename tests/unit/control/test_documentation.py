"""docs/reference/operator.md names every setting and every metric, and none that is not there."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from dsd_operator.metrics import Metrics
from dsd_operator.settings import Settings, variable
from dsd_operator.status.observed import PushState

TEXT = (Path(__file__).resolve().parents[3] / "docs/reference/operator.md").read_text()


def first_cells() -> set[str]:
    """What stands in backquotes at the start of a table's line."""
    return set(re.findall(r"^\| `([A-Za-z_]+)` \|", TEXT, re.M))


def test_settings() -> None:
    documented = {name for name in first_cells() if name.startswith("DSD_OPERATOR_")}
    assert documented == {variable(name) for name in Settings.model_fields}


def test_metrics() -> None:
    documented = {name.removesuffix("_total") for name in first_cells() if name.startswith("dsd_operator_")}
    families = text_string_to_metric_families(Metrics("1").render()[0].decode())
    assert documented == {family.name for family in families}


def test_states_of_pods() -> None:
    assert {state.value for state in PushState} <= first_cells()
