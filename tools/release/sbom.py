"""Bills of materials in CycloneDX, one for each wheel and each image, made by cyclonedx-py from clean environments.

A wheel's is of what pip installs with it at the versions of the lock, an image's of the lock that the Dockerfile
installs, our packages, and the base image as one component: what that holds, its own publisher says.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name

from tools.cluster import shell
from tools.cluster.paths import REPOSITORY
from tools.release.environments import make_from_lock
from tools.release.projects import OPERATOR, PROJECTS, RUNTIME, Project


@dataclass(frozen=True)
class Image:
    """An image as a bill of materials sees it: its lock, our packages in it, and the Dockerfile's base argument."""

    name: str
    lock: Path
    projects: tuple[Project, ...]
    base_argument: str


_LOCKS: Final = REPOSITORY / "requirements"
IMAGES: Final = (
    Image("dsd-operator", _LOCKS / "operator.txt", (RUNTIME, OPERATOR), "PYTHON_IMAGE"),
    Image("dsd-runtime", _LOCKS / "runtime.txt", (RUNTIME,), "VLLM_IMAGE"),
)


def of_environment(home: Path, target: Path, when: int) -> dict[str, Any]:
    """What is installed in the virtualenv at `home`, without the tools of packaging. Raises ClusterError."""
    program = Path(sys.executable).with_name("cyclonedx-py")
    options: list[str | Path] = ["--output-reproducible", "--no-validate", "--output-file", target]
    shell.run([program, "environment", home / "bin" / "python", *options], env={"SOURCE_DATE_EPOCH": str(when)})
    found: dict[str, Any] = json.loads(target.read_text())
    return found


def base_image(argument: str) -> str:
    """The public base that the Dockerfile names for an argument."""
    (found,) = re.findall(rf"^ARG {argument}=(\S+)$", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)
    return str(found)


def _about(bill: dict[str, Any], subject: Mapping[str, str]) -> dict[str, Any]:
    """The bill with what it is of, which depends on all that nothing else depends on."""
    needed = {ref for entry in bill["dependencies"] for ref in entry.get("dependsOn", [])}
    roots = sorted(component["bom-ref"] for component in bill["components"] if component["bom-ref"] not in needed)
    bill["metadata"]["component"] = {"bom-ref": "subject", **subject}
    bill["dependencies"] = [{"ref": "subject", "dependsOn": roots}, *bill["dependencies"]]
    return bill


def of_wheel(project: Project, home: Path, target: Path, when: int) -> dict[str, Any]:
    """The bill of a wheel, from the clean environment that it was installed in. Raises ClusterError."""
    bill = of_environment(home, target, when)
    own = next(c for c in bill["components"] if c["name"] == project.name)
    bill["components"].remove(own)
    bill["dependencies"] = [entry for entry in bill["dependencies"] if entry["ref"] != own["bom-ref"]]
    return _written(_about(bill, {"type": "library", "name": project.name, "version": own["version"]}), target)


def of_image(image: Image, wheels: Path, home: Path, target: Path, when: int) -> dict[str, Any]:
    """The bill of an image. Raises ClusterError."""
    make_from_lock(image.lock, image.projects, wheels, home)
    bill = of_environment(home, target, when)
    name, _, tag = base_image(image.base_argument).rpartition(":")
    bill["components"].append({"bom-ref": "base", "type": "container", "name": name, "version": tag})
    return _written(
        _about(bill, {"type": "container", "name": image.name, "version": image.projects[-1].version()}), target
    )


def _written(bill: dict[str, Any], target: Path) -> dict[str, Any]:
    target.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")
    return bill


def invalid(target: Path) -> str:
    """What CycloneDX's schema has against a bill; "" for nothing."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(target.read_text())
    return "" if errors is None else str(errors)


def packages(target: Path) -> dict[str, str]:
    """The Python packages of a bill: normalised name -> version."""
    components = json.loads(target.read_text())["components"]
    return {canonicalize_name(c["name"]): c["version"] for c in components if c["type"] == "library"}


def write_all(homes: Mapping[str, Path], target: Path, scratch: Path, when: int) -> list[Path]:
    """All bills into `target`, where the wheels lie; `homes` are the clean environments of the projects, by name.

    Raises ClusterError.
    """
    made: list[Path] = []
    for project in PROJECTS:
        made.append(target / f"{project.name}-wheel.cdx.json")
        of_wheel(project, homes[project.name], made[-1], when)
    for image in IMAGES:
        made.append(target / f"{image.name}-image.cdx.json")
        of_image(image, target, scratch / image.name, made[-1], when)
    return made
