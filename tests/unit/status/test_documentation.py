"""docs/reference/conditions.md lists every condition and every reason, and none that does not exist."""

import re
from pathlib import Path
from typing import Final

from dsd_operator.status.reasons import ConditionType, Reason

TEXT: Final = (Path(__file__).parents[3] / "docs" / "reference" / "conditions.md").read_text()


def first_column(heading: str) -> set[str]:
    """The names in the first column of the table below a heading."""
    section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_reason_is_explained() -> None:
    assert first_column("Reasons") == {reason.value for reason in Reason}


def test_every_condition_is_explained() -> None:
    assert first_column("The four conditions") == {kind.value for kind in ConditionType}
