"""Options of engines that are more than one process group in one pod: refused, unless they say "one" anyway."""

from collections.abc import Sequence
from typing import Final

from dsd_runtime.owned import OWNED_OPTIONS
from kubectl_dsd.convert.report import Report

_ONE: Final = (*("--pipeline-parallel-size", "--data-parallel-size", "--data-parallel-size-local", "--nnodes"),)
"""Sizes that may be 1."""

_WITHOUT_MEANING: Final = (
    *("--master-addr", "--master-port", "--data-parallel-address", "--data-parallel-rpc-port"),
    *("--data-parallel-backend", "--data-parallel-supervisor-port"),
)
"""Options that mean nothing where there is one engine."""

OPTIONS_OF_SEVERAL: Final = frozenset(
    name
    for name in OWNED_OPTIONS
    if name in _ONE or name in _WITHOUT_MEANING or name.startswith(("--data-parallel-", "--dp-", "--node-rank"))
)


def judge(canonical: str, name: str, values: Sequence[str], report: Report) -> None:
    """Drop the option where it changes nothing, else a problem: an engine must not come out smaller than it was."""
    if canonical in _ONE and values[0].strip() == "1":
        if canonical == "--data-parallel-size-local":
            report.note(name, "left out: it says one, which it is anyway")
        return
    if canonical == "--node-rank" and values[0].strip() == "0":
        return
    if canonical in _WITHOUT_MEANING or canonical.startswith("--dp-"):
        report.note(name, "left out: it means something for engines over several processes or nodes only")
    else:
        report.problem(name, OWNED_OPTIONS[canonical])
