"""Makes docs/benchmarks.md and its pictures of the result files: `python -m bench.report` (`--check`: only say if they
are current). Any file in bench/results gets a section; `tables` and `plots` make what is in it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.plots import PLOTS, svg
from bench.results import REPOSITORY, RESULTS, Result, read
from bench.tables import tables

PAGE: Final = REPOSITORY / "docs" / "benchmarks.md"
PICTURES: Final = REPOSITORY / "docs" / "benchmarks"

_HEAD: Final = """# Benchmarks

Made by `python -m bench.report` from the files in `bench/results/`; do not edit. Each has its `make` target, which
measures anew and writes the file: environment, method, every measured value, and the numbers that are required to hold.
"""


def page(results: dict[str, Result]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(section(name, result) for name, result in sorted(results.items()))])


def section(name: str, result: Result) -> str:
    """One benchmark: method, environment, required numbers, picture, tables."""
    env = result.environment
    software = ", ".join(f"{what} {version}" for what, version in sorted(env.versions.items()))
    return "\n".join(
        [
            f"## {name}\n",
            f"{result.method}\n",
            f"{env.cores} cores of {env.cpu}, {env.memory:g} GiB; {software}; {env.date}.\n",
            *_required(result),
            "",
            *_picture(name),
            *tables(result.data),
        ]
    )


def _picture(name: str) -> list[str]:
    return [f"![{name}](benchmarks/{name}.svg)\n"] if name in PLOTS else []


def _required(result: Result) -> list[str]:
    rows = [
        f"| {r.name} | {r.value:.3g} {r.unit} | {r.relation} {r.threshold:g} | {'yes' if r.met else '**no**'} |"
        for r in result.required
    ]
    return ["| Required | Measured | Bound | Met |", "|---|---|---|---|", *rows]


def stored() -> dict[str, Result]:
    """Every result there is, by name."""
    return {path.stem: read(path.stem) for path in sorted(RESULTS.glob("*.json"))}


def current() -> str:
    """The page that the result files give."""
    return page(stored())


def files() -> dict[Path, str]:
    """Page and pictures that the result files give."""
    results = stored()
    pictures = {PICTURES / f"{name}.svg": svg(name, result) for name, result in results.items() if name in PLOTS}
    return {PAGE: page(results), **pictures}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write page and pictures, or check them; 1 when one is out of date."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when something is out of date")
    options = parser.parse_args(arguments)
    if options.check:
        return _check(files())
    PICTURES.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text)
    return 0


def _check(wanted: dict[Path, str]) -> int:
    outdated = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in outdated:
        print(f"{path} is out of date: run `python -m bench.report`", file=sys.stderr)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
