"""Entry point of ``python3 -m tools.cluster``."""

import sys

from tools.cluster.cli import main

if __name__ == "__main__":
    sys.exit(main())
