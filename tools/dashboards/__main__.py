"""Writes the dashboards into the chart: `python -m tools.dashboards`; `--check` fails where one is out of date."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from tools.dashboards import deployment, fleet, operators
from tools.dashboards.frame import Board
from tools.dashboards.grafana import FOLDER


def boards() -> Sequence[Board]:
    """All dashboards."""
    return [fleet.board(), deployment.board(), operators.board()]


_PARSER: Final = argparse.ArgumentParser(prog="python -m tools.dashboards", description=(__doc__ or "").split(":")[0])
_PARSER.add_argument("--check", action="store_true", help="write nothing; fail where a dashboard is out of date")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or compare them; 1 when they differ."""
    wanted = {f"{board.file}.json": board.render() for board in boards()}
    if _PARSER.parse_args(arguments).check:
        return _compare(wanted)
    FOLDER.mkdir(exist_ok=True)
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


def _compare(wanted: dict[str, str]) -> int:
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    different = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if different:
        print(f"{', '.join(different)}: out of date; run `make dashboards`", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
