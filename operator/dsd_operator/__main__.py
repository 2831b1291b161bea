"""Entry point of `dsd-operator` and `python -m dsd_operator`: reads the settings, sets up logging, runs the app."""

import argparse
import asyncio
import os
import sys

from dsd_operator import __version__, logs
from dsd_operator.settings import SettingsError, describe, from_environment


def main(arguments: list[str] | None = None) -> int:
    """Run the operator; returns the exit status."""
    parser().parse_args(arguments)
    try:
        settings = from_environment(os.environ)
    except SettingsError as error:
        print(f"dsd-operator: the environment is not complete (see --help):\n{error}", file=sys.stderr)
        return 2
    logs.configure(settings.log_format, settings.log_level)
    # Late: --help and mistakes answer at once, without loading two clients.
    from dsd_operator.app import run
    from dsd_operator.cluster.connection import NoConfiguration

    try:
        asyncio.run(run(settings))
    except NoConfiguration as error:
        print(f"dsd-operator: {error}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line; its help names every setting."""
    made = argparse.ArgumentParser(
        prog="dsd-operator",
        description="Kubernetes operator for vLLM's dynamic speculative decoding. Settings are environment variables:",
        epilog=describe() + "\n\nOutside a cluster KUBECONFIG, or ~/.kube/config, says where the API server is.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return made


if __name__ == "__main__":
    sys.exit(main())
