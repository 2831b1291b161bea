"""The format of every benchmark's result file, and the environment it was measured in.

`required` is computed from `data` by the benchmark itself, so that whoever has the file can compute it again.
"""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).resolve().parent / "results"

Relation = Literal[">=", "<="]


class Strict(BaseModel):
    """Frozen, and nothing unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Environment(Strict):
    """The machine and the software; `memory` in GiB."""

    cpu: str
    cores: int
    memory: float
    versions: Mapping[str, str]
    commit: str
    date: str


class Required(Strict):
    """One number that must hold; `met` says whether it does."""

    name: str
    value: float
    unit: str
    relation: Relation
    threshold: float
    met: bool

    @classmethod
    def of(cls, name: str, value: float, unit: str, relation: Relation, threshold: float) -> Self:
        """Compare `value` with `threshold`."""
        met = holds(value, relation, threshold)
        return cls(name=name, value=value, unit=unit, relation=relation, threshold=threshold, met=met)

    @model_validator(mode="after")
    def _met_is_true_to_the_numbers(self) -> Self:
        if self.met != holds(self.value, self.relation, self.threshold):
            raise ValueError(
                f"{self.name}: met={self.met}, but {self.value} {self.relation} {self.threshold} says else"
            )
        return self


class Result(Strict):
    """One result file."""

    environment: Environment
    method: str = Field(min_length=100)
    data: tuple[dict[str, Any], ...] = Field(min_length=1)
    required: tuple[Required, ...] = Field(min_length=1)


def holds(value: float, relation: Relation, threshold: float) -> bool:
    """Whether `value` stands in `relation` to `threshold`."""
    return value >= threshold if relation == ">=" else value <= threshold


def spread(values: Sequence[float]) -> dict[str, float]:
    """Minimum, median, 95th percentile and maximum, as measured (two values or more)."""
    p95 = quantiles(values, n=20, method="inclusive")[-1]
    return {"min": min(values), "p50": median(values), "p95": p95, "max": max(values)}


def extent(values: Sequence[float]) -> dict[str, float]:
    """Minimum, median and maximum: the spread of a few repeats."""
    return {"min": min(values), "median": median(values), "max": max(values)}


def environment(versions: Mapping[str, str]) -> Environment:
    """This machine now; `versions` names the software that was measured."""
    return Environment(
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        memory=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        versions={"python": platform.python_version(), **versions},
        commit=_commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str:
    """The commit of this checkout, marked when files differ from it."""
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--abbrev=40", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def path_of(name: str) -> Path:
    """Where benchmark `name` keeps its result."""
    return RESULTS / f"{name}.json"


def write(name: str, result: Result, folder: Path = RESULTS) -> Path:
    """Write the file of benchmark `name`; returns its path."""
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")
    return path


def read(name: str) -> Result:
    """Read and check the file of benchmark `name`."""
    return Result.model_validate_json(path_of(name).read_text())
