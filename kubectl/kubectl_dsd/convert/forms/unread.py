"""What of a mapping nobody read: nothing is dropped without a word."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubectl_dsd.convert.report import Report

NOT_CARRIED: Final = "is not carried over; put what it does into spec.podTemplate, if it has to stay"


def tell(values: Mapping[str, Any], known: Collection[str], path: str, report: Report) -> None:
    """Report every key of `values` that says something and is not among `known`; `path` is where `values` stands."""
    for key, value in values.items():
        if key not in known and value not in (None, "", False, [], {}):
            report.lose(f"{path}.{key}".lstrip("."), NOT_CARRIED)
