"""The command line: ``python3 -m tools.cluster COMMAND``."""

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.cluster import api_only, debian, full_node, gobuild, images, status, versions
from tools.cluster.console import say
from tools.cluster.errors import ClusterError

_EPILOG = """\
`up` prints where the kubeconfig is. Programs and images are kept in ${XDG_CACHE_HOME:-~/.cache}/dsd-operator.
If DSD_KUBECONFIG names an existing cluster, `up` and `images` use that one and start nothing here.
"""


def _external() -> bool:
    """Whether the user brought a cluster; says so."""
    named = os.environ.get("DSD_KUBECONFIG")
    if named:
        say(f"using the existing cluster of DSD_KUBECONFIG={named}; nothing is started here")
        if not Path(named).exists():
            raise ClusterError(f"DSD_KUBECONFIG names {named}, which does not exist")
    return bool(named)


def _up(arguments: argparse.Namespace) -> None:
    if arguments.api_only:
        debian.ensure(debian.API_ONLY_PACKAGES)
        plane = api_only.start(_state(arguments))
        print(f"export KUBECONFIG={plane.layout.kubeconfig}")
    elif _external():
        print(f"export KUBECONFIG={os.environ['DSD_KUBECONFIG']}")
    else:
        full_node.up()
        print(f"export KUBECONFIG={full_node.layout().kubeconfig}")
        programs = [str(gobuild.binary(tool).parent) for tool in (versions.KUBECTL, versions.HELM)]
        print(f"export PATH={':'.join(programs)}:$PATH")


def _down(arguments: argparse.Namespace) -> None:
    if arguments.state:
        api_only.stop(arguments.state)
    else:
        full_node.down()


def _state(arguments: argparse.Namespace) -> Path:
    if arguments.state is None:
        raise ClusterError("--api-only needs --state DIR, the directory for this cluster's files")
    return Path(arguments.state)


def _images(arguments: argparse.Namespace) -> None:
    _external()
    print(json.dumps(dataclasses.asdict(images.current() if arguments.print else images.ensure()), indent=1))


def _tools(arguments: argparse.Namespace) -> None:
    gobuild.ensure(versions.ALL_TOOLS)
    if arguments.prune:
        gobuild.remove_other_builds((*versions.ALL_TOOLS, *versions.ON_DEMAND_TOOLS))
    for tool in versions.ALL_TOOLS:
        print(gobuild.binary(tool))


def _status(_: argparse.Namespace) -> None:
    print(status.render())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tools.cluster",
        description="The local Kubernetes: one real node, or only an API server, from parts built here.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    up = command("up", _up, "start the node, or with --api-only etcd, API server and controllers on free ports")
    up.add_argument("--api-only", action="store_true", help="no node: for integration tests; any number side by side")
    up.add_argument("--state", type=Path, metavar="DIR", help="with --api-only: the directory for this cluster's files")
    down = command("down", _down, "stop what `up` started, and remove all of it but images, programs and logs")
    down.add_argument("--state", type=Path, metavar="DIR", help="stop the API-only cluster of this directory")
    command("status", _status, "say what runs, and where its logs are")
    build = command("images", _images, "build and push base and project images, and print their references as JSON")
    build.add_argument("--print", action="store_true", help="only print what they are, or will be, called")
    tools = command("tools", _tools, "build the pinned programs and print their paths")
    tools.add_argument("--prune", action="store_true", help="also delete builds of other versions")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 1 with a message on standard error if it fails."""
    parsed = _parser().parse_args(arguments)
    try:
        parsed.run(parsed)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return 0
