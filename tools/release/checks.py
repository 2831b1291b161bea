"""Each check of `make release-check`: a function that says what it found, or raises CheckError with what is wrong.

They come in order: those that look at the tree, then those that look at what `Release` has built.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from tools.cluster import shell
from tools.cluster.paths import REPOSITORY
from tools.release import build, chart_package, environments, licences, notices, sbom, versions, wheel_metadata
from tools.release.projects import PROJECTS, Project, copy_sources


class CheckError(Exception):
    """A check that did not pass; the text says what is wrong and what to do."""


@dataclass
class Release:
    """What the checks share, each made when it is first asked for: artifacts in `target`, the rest in `scratch`."""

    target: Path
    scratch: Path
    final: bool = False
    when: int = field(default_factory=build.epoch)

    @cached_property
    def sources(self) -> dict[str, Path]:
        """The sources of each project, by its name: copied once, for somebody may go on working meanwhile."""
        return {p.name: copy_sources(p, self.scratch / "sources" / p.name) for p in PROJECTS}

    @cached_property
    def artifacts(self) -> dict[str, tuple[Path, Path]]:
        """Wheel and source distribution of each project, by its name."""
        scratch = self.scratch / "first"
        return {n: build.build(source, self.target, scratch / n, self.when) for n, source in self.sources.items()}

    @cached_property
    def homes(self) -> dict[str, Path]:
        """A clean environment for each project, its wheel and nothing but what that asks for in it."""
        assert self.artifacts
        return {p.name: environments.make(p, self.target, self.scratch / "homes" / p.name) for p in PROJECTS}


def one_version(_: Release) -> str:
    """Packages, chart, images and documentation say the same version."""
    if found := versions.disagreeing():
        raise CheckError("\n".join(found))
    return f"{versions.current()} in {len(versions.places())} places"


def changelog(release: Release) -> str:
    """CHANGELOG.md has a section for the version, dated when the release is final."""
    version = versions.current()
    heading, entries = versions.changes(version)
    if not entries:
        raise CheckError(f"CHANGELOG.md has no section with entries for {version}: say what a user will see")
    if release.final and not versions.dated(heading):
        raise CheckError(f"the section is called {heading!r}; date it: ## {version} (YYYY-MM-DD)")
    return f"{heading!r}: {len(entries)} entries"


def clean_tree(_: Release) -> str:
    """Nothing is uncommitted: what is built is what the commit says."""
    git = ["git", "-c", f"safe.directory={REPOSITORY}"]
    if changed := shell.run([*git, "status", "--porcelain"], cwd=REPOSITORY).rstrip():
        raise CheckError(f"commit or remove:\n{changed}")
    return shell.run([*git, "rev-parse", "HEAD"], cwd=REPOSITORY).strip()


def generated_files(_: Release) -> str:
    """Generated files are what the code gives (`make check-generated`)."""
    done = subprocess.run(["make", "check-generated"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckError(f"{shell.tail(done.stdout + done.stderr)}\nrun `make generate` and commit")
    return "as the code gives them"


def dependency_licences(_: Release) -> str:
    """Every dependency's licence is known and allowed: a short list for what is shipped, a longer one for the tests."""
    shipped = {name for packages in notices.contents().values() for name in packages}
    wanted = dict.fromkeys(notices.lock_pins("dev"), licences.DEVELOPMENT) | dict.fromkeys(shipped, licences.SHIPPED)
    found = {name: licences.licence_of(name) for name in wanted}
    if bad := [f"{n}: {found[n] or 'unknown'}" for n in sorted(wanted) if not licences.allowed(found[n], wanted[n])]:
        raise CheckError("not allowed (tools/release/licences.py):\n" + "\n".join(bad))
    return f"{len(shipped)} shipped, {len(wanted)} with the tools of development"


def third_party_page(_: Release) -> str:
    """THIRD-PARTY.md is that of the locks."""
    if notices.TARGET.read_text() != notices.render():
        raise CheckError("THIRD-PARTY.md is out of date; run python -m tools.release.notices and commit")
    return notices.TARGET.name


def builds(release: Release) -> str:
    """Wheels and source distributions build."""
    return ", ".join(path.name for pair in release.artifacts.values() for path in pair)


def reproducible(release: Release) -> str:
    """A second build, of a source distribution and of a wheel from it in isolation, gives the same bytes as the first.

    So the wheel of the source distribution is the direct one, and pyproject.toml asks for all that building needs.
    """
    for project in PROJECTS:
        wheel, sdist = release.artifacts[project.name]
        again = release.scratch / "again" / project.name
        _same(sdist, build.sdist(release.sources[project.name], again, release.when))
        _same(wheel, build.wheel_in_isolation(sdist, again, release.when))
    return f"SOURCE_DATE_EPOCH={release.when}"


def _same(first: Path, second: Path) -> None:
    if first.name != second.name or first.read_bytes() != second.read_bytes():
        kept = shutil.copyfile(second, first.with_name(f"second-{second.name}"))
        raise CheckError(f"two builds of {first.name} differ; the other one is {kept}, diffoscope shows where")


def metadata(release: Release) -> str:
    """The metadata are valid and complete; nothing strange is in the archives, and the licence is."""
    found: list[str] = []
    for project in PROJECTS:
        wheel, sdist = release.artifacts[project.name]
        found += [f"{wheel.name}: {text}" for text in wheel_metadata.problems_of_wheel(wheel, project)]
        found += [f"{sdist.name}: {text}" for text in wheel_metadata.problems_of_sdist(sdist, project)]
    if found:
        raise CheckError("\n".join(found))
    return f"{2 * len(PROJECTS)} archives"


def installs(release: Release) -> str:
    """In a clean environment each wheel installs with what it asks for, its commands run, and every module imports:
    without extras, so without vLLM."""
    said = []
    for project in PROJECTS:
        home = release.homes[project.name]
        for command in project.commands:
            _expect(project, command, environments.run(home, command))
        said.append(f"{project.name} ({environments.import_all(project, home)} modules)")
    return ", ".join(said)


def _expect(project: Project, command: tuple[str, ...], printed: str) -> None:
    """A version must be the right one, and a --help must say how the command is used."""
    wanted = project.version() if command[1] == "--version" else "usage: "
    if wanted not in printed.lower():
        raise CheckError(f"`{' '.join(command)}` prints {printed!r}, without {wanted}")


def chart(release: Release) -> str:
    """The chart lints strictly and packs, twice to the same bytes."""
    chart_package.lint()
    first = chart_package.package(release.target, release.when)
    _same(first, chart_package.package(release.scratch / "chart", release.when))
    return first.name


def bills(release: Release) -> str:
    """A valid bill of materials for every wheel and image; an image's holds exactly its lock and our packages."""
    made = sbom.write_all(release.homes, release.target, release.scratch / "bills", release.when)
    bad = [f"{path.name}: {problem}" for path in made if (problem := sbom.invalid(path))]
    for image in sbom.IMAGES:
        wanted = notices.lock_pins(image.lock.stem) | {project.name: project.version() for project in image.projects}
        listed = sbom.packages(release.target / f"{image.name}-image.cdx.json")
        different = sorted(wanted.items() ^ listed.items())
        bad += [f"image {image.name}: {name} {version} is not in lock and bill alike" for name, version in different]
    if bad:
        raise CheckError("\n".join(bad))
    return ", ".join(path.name for path in made)


CHECKS: Final[dict[str, Callable[[Release], str]]] = {
    "version": one_version,
    "changelog": changelog,
    "tree": clean_tree,
    "generated": generated_files,
    "licences": dependency_licences,
    "notices": third_party_page,
    "build": builds,
    "metadata": metadata,
    "reproducible": reproducible,
    "install": installs,
    "chart": chart,
    "sbom": bills,
}
"""Name -> check, the quick ones first."""
