"""Entry point of `python -m tools.demo up|down`."""

import argparse
import sys

import httpx

from tools.cluster.errors import ClusterError
from tools.demo import story
from tools.testbed.waiting import WaitTimeoutError


def main() -> int:
    """Run the demo or remove it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument("action", choices=("up", "down"), help="up: run the demo; down: remove what it made")
    action = parser.parse_args().action
    try:
        story.up() if action == "up" else story.down()
    except (ClusterError, RuntimeError, WaitTimeoutError, httpx.HTTPError) as error:
        print(f"\n{error}\n\nAfter mending it, run `make demo` again: it goes on where it stopped.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
