"""`python -m tools.release`: build what a release consists of, and say whether this checkout is fit to be one."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.cluster.errors import ClusterError
from tools.cluster.paths import REPOSITORY
from tools.release import chart_package, sbom
from tools.release.checks import CHECKS, CheckError, Release

DIST: Final = REPOSITORY / "dist"


def check(release: Release, names: Sequence[str]) -> int:
    """Run checks, each told with its time and what it found; returns how many failed."""
    failed = []
    for name in names:
        begin = time.monotonic()
        try:
            mark, found = "passed", CHECKS[name](release)
        except (CheckError, ClusterError) as error:
            mark, found = "FAILED", str(error)
            failed.append(name)
        first, *more = found.splitlines() or [""]
        print(f"{mark}  {name:<13} {time.monotonic() - begin:5.1f} s  {first}", flush=True)
        for line in more:
            print(f"{'':<31}{line}")
    left_out = [name for name in CHECKS if name not in names]
    print(f"{len(names) - len(failed)} of {len(names)} checks passed", end="")
    print(f"; failed: {', '.join(failed)}" if failed else "", end="")
    print(f"; left out: {', '.join(left_out)}" if left_out else "")
    return len(failed)


def dist(release: Release) -> None:
    """Wheels, source distributions, the chart's archive and the bills of materials. Raises ClusterError."""
    made = [path for pair in release.artifacts.values() for path in pair]
    made.append(chart_package.package(release.target, release.when))
    made += sbom.write_all(release.homes, release.target, release.scratch / "bills", release.when)
    for path in made:
        print(path)


def bills(release: Release) -> None:
    """The bills of materials alone (and the wheels that they are of). Raises ClusterError."""
    for path in sbom.write_all(release.homes, release.target, release.scratch / "bills", release.when):
        print(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--dist", type=Path, default=DIST, help="where what is built goes; emptied (default: %(default)s)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="build everything and say what is not fit for a release")
    checking.add_argument("--only", nargs="+", choices=CHECKS, help="these checks alone")
    checking.add_argument("--skip", nargs="+", choices=CHECKS, default=[], help="all checks but these")
    checking.add_argument("--final", action="store_true", help="the section of CHANGELOG.md must carry its date")
    commands.add_parser("dist", help="build wheels, source distributions, the chart and the bills of materials")
    commands.add_parser("sbom", help="build the bills of materials")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Entry point; 1 when a check failed or something could not be built."""
    arguments = _parser().parse_args(words)
    shutil.rmtree(arguments.dist, ignore_errors=True)
    arguments.dist.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="dsd-release-") as scratch:
        release = Release(arguments.dist, Path(scratch), final=getattr(arguments, "final", False))
        try:
            if arguments.command == "check":
                names = [name for name in arguments.only or CHECKS if name not in arguments.skip]
                return int(check(release, names) > 0)
            (dist if arguments.command == "dist" else bills)(release)
        except ClusterError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
