"""One version everywhere: what says a version of ours, and whether it is the right one."""

import re
from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster.paths import REPOSITORY
from tools.release.projects import PROJECTS

_NUMBER: Final = r"(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"


def current(root: Path = REPOSITORY) -> str:
    """The version of this checkout: that of the first project, which all others must have."""
    return PROJECTS[0].version(root)


def places(root: Path = REPOSITORY) -> dict[str, str]:
    """Every place that says the version -> what it says ("" where nothing is found)."""
    chart: dict[str, Any] = yaml.safe_load((root / "charts/dsd-operator/Chart.yaml").read_text())
    found = {f"{p.folder}/{p.package}/__init__.py": p.version(root) for p in PROJECTS}
    found |= {f"Chart.yaml {key}": str(chart[key]) for key in ("version", "appVersion")}
    for name in ("Dockerfile", "README.md"):
        tags = re.findall(rf"dsd-(?:operator|runtime):{_NUMBER}", (root / name).read_text())
        found |= {f"{name}, image tag {number}": tag for number, tag in enumerate(tags, 1)}
    labels = re.findall(rf"^ARG VERSION={_NUMBER}$", (root / "Dockerfile").read_text(), re.MULTILINE)
    return found | {f"Dockerfile, ARG VERSION {number}": label for number, label in enumerate(labels, 1)}


def disagreeing(root: Path = REPOSITORY) -> list[str]:
    """The places that say another version than the first project."""
    wanted = current(root)
    return [f"{place} says {said or 'nothing'}, not {wanted}" for place, said in places(root).items() if said != wanted]


def changes(version: str, root: Path = REPOSITORY) -> tuple[str, list[str]]:
    """The heading of a version's section in CHANGELOG.md, and its entries; ("", []) where there is none."""
    for part in (root / "CHANGELOG.md").read_text().split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        if version in re.findall(_NUMBER, heading):
            return heading, [line for line in body.splitlines() if line.startswith("- ")]
    return "", []


def dated(heading: str) -> bool:
    """Whether a section's heading says the day of its release (`0.1.0 (2026-12-01)`)."""
    return re.fullmatch(rf"{_NUMBER} \(20\d\d-\d\d-\d\d\)", heading) is not None
