"""Writes a page that is generated from the code, or compares it: the command line of the `tools.generate_*` modules."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def write_or_check(target: Path, render: Callable[[], str], module: str, text: str) -> int:
    """Write `render()` to `target`, or with --check compare the two; 1 when they differ.

    `module` is what to run to bring the page up to date, `text` what --help says first.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=text.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is out of date")
    if not parser.parse_args().check:
        target.write_text(render(), encoding="utf-8")
    elif target.read_text(encoding="utf-8") != render():
        print(f"{target.name} is out of date; run python -m {module}", file=sys.stderr)
        return 1
    return 0
