"""Makes docs/benchmarks.md of the result files: `python -m bench.report` (`--check`: only say if it is current)."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.results import REPOSITORY, RESULTS, Result, read

PAGE: Final = REPOSITORY / "docs" / "benchmarks.md"

_HEAD: Final = """# Benchmarks

Made by `python -m bench.report` from the files in `bench/results/`; do not edit. Each has its `make` target, which
measures anew and writes the file: environment, method, every measured value, and the numbers that are required to hold.
"""


def page(results: dict[str, Result]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(section(name, result) for name, result in sorted(results.items()))])


def section(name: str, result: Result) -> str:
    """One benchmark: method, environment, required numbers, spreads."""
    env = result.environment
    software = ", ".join(f"{what} {version}" for what, version in sorted(env.versions.items()))
    return "\n".join(
        [
            f"## {name}\n",
            f"{result.method}\n",
            f"{env.cores} cores of {env.cpu}, {env.memory:g} GiB; {software}; {env.date}.\n",
            *_required(result),
            "",
            *_spreads(result),
        ]
    )


def _required(result: Result) -> list[str]:
    rows = [
        f"| {r.name} | {r.value:.3g} {r.unit} | {r.relation} {r.threshold:g} | {'yes' if r.met else '**no**'} |"
        for r in result.required
    ]
    return ["| Required | Measured | Bound | Met |", "|---|---|---|---|", *rows]


def _spreads(result: Result) -> list[str]:
    rows = [
        f"| {row['condition']} | {row['changes']} | "
        + " | ".join(f"{value:.3f}" for value in row["seconds"].values())
        + " |"
        for row in result.data
        if "seconds" in row
    ]
    head = ["| Seconds | changes | minimum | median | 95th percentile | maximum |", "|---|---|---|---|---|---|"]
    return [*head, *rows, ""] if rows else []


def current() -> str:
    """The page that the result files give."""
    return page({path.stem: read(path.stem) for path in RESULTS.glob("*.json")})


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or check it; 1 when it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is out of date")
    options = parser.parse_args(arguments)
    if not options.check:
        PAGE.write_text(current())
        return 0
    return _check(PAGE)


def _check(path: Path) -> int:
    if path.exists() and path.read_text() == current():
        return 0
    print(f"{path} is out of date: run `python -m bench.report`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
