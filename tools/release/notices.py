"""THIRD-PARTY.md: what others wrote that our images and wheels bring along, with versions and licences.

`python -m tools.release.notices` writes it from the locks and the installed metadata; `--check` compares. It lies in
both images under /licenses.
"""

import sys
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.cluster.paths import REPOSITORY
from tools.generated_page import write_or_check
from tools.release.licences import closure, homepage_of, licence_of
from tools.release.projects import PROJECTS, Project

TARGET: Final = REPOSITORY / "THIRD-PARTY.md"
LOCKS: Final = REPOSITORY / "requirements"

_HEAD: Final = """\
# Notices of third parties

<!-- Written by python -m tools.release.notices from the locks; do not edit. -->

The DSD operator is under the Apache License 2.0 ([LICENSE](LICENSE)). The images contain, and the wheels ask for, the
packages below, each under its own licence. In the images the text of each licence lies beside its package, in
`*.dist-info` of `/opt/dsd/lib/python3.*/site-packages` (operator) and of vLLM's Python (runtime); this page is
`/licenses/THIRD-PARTY.md`. Base images (`org.opencontainers.image.base.name`) come with notices of their own.
"""


def lock_pins(name: str) -> dict[str, str]:
    """A lock's packages for this platform: normalised name -> version."""
    lines = (LOCKS / f"{name}.txt").read_text().replace("\\\n", " ").splitlines()
    found = [Requirement(line.partition(" --hash")[0]) for line in lines if line.strip()]
    wanted = [r for r in found if r.marker is None or r.marker.evaluate()]
    return {canonicalize_name(r.name): next(iter(r.specifier)).version for r in wanted}


def dependencies(project: Project) -> dict[str, str]:
    """What a wheel needs, directly or not, without extras, at the versions of the lock."""
    pins = lock_pins("dev")
    names = closure(*_third_party(project))
    return {name: pins[name] for name in sorted(names)}


def _third_party(project: Project) -> list[str]:
    """Its requirements, and those of our other packages that it needs."""
    own = {other.name: other for other in PROJECTS}
    found: list[str] = []
    for text in project.pyproject()["dependencies"]:
        name = canonicalize_name(Requirement(text).name)
        found += _third_party(own[name]) if name in own else [text]
    return found


def contents() -> dict[str, dict[str, str]]:
    """Everything that is shipped: what it is -> its packages with their versions."""
    return {
        "Image dsd-operator": lock_pins("operator"),
        "Image dsd-runtime, where the vLLM image lacks them": lock_pins("runtime"),
        **{f"Wheel {project.name}": dependencies(project) for project in PROJECTS},
    }


def render() -> str:
    """The page."""
    parts = [_HEAD]
    for title, packages in contents().items():
        parts += [f"\n## {title}\n", "| Package | Version | Licence | Home |", "|---|---|---|---|"]
        parts += [f"| {n} | {v} | {licence_of(n)} | {homepage_of(n)} |" for n, v in sorted(packages.items())]
    return "\n".join(parts) + "\n"


def main() -> int:
    """Entry point."""
    return write_or_check(Path(TARGET), render, "tools.release.notices", __doc__ or "")


if __name__ == "__main__":
    sys.exit(main())
