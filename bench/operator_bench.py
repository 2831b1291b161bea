"""How the operator bears a fleet: `python -m bench.operator_bench` (`make bench-operator`).

A thousand DSDDeployments of three pods, one of three hundred, and what the operator needs for them: time, memory and
requests. `operator_fleet` has what it runs on, `operator_phases` what is measured; `report` makes the page.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from bench.operator_fleet import fleet
from bench.operator_phases import Rows, measure
from bench.operator_plan import Plan
from bench.operator_required import required_of
from bench.results import Result, environment, write
from tools.cluster import versions

NAME: Final = "operator"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result; 1 when a required number is not met."""
    options = vars(_parser().parse_args(arguments))
    dry, plan = options.pop("dry"), Plan(**options)
    data = tuple(asyncio.run(_run(plan)))
    software = {"kubernetes": versions.KUBERNETES, "kwok": versions.KWOK.version}
    result = Result(environment=environment(software), method=plan.method, data=data, required=required_of(data))
    print("nothing is written (--dry)" if dry else f"wrote {write(NAME, result)}")
    for r in result.required:
        print(f"{'met ' if r.met else 'MISS'} {r.name}: {r.value:.3g} {r.unit} {r.relation} {r.threshold:g}")
    return 0 if all(entry.met for entry in result.required) else 1


async def _run(plan: Plan) -> Rows:
    async with fleet() as running:
        return await measure(running, plan)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.operator_bench", description=__doc__.splitlines()[0])

    def number(name: str, default: int, text: str) -> None:
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default: %(default)s)")

    number("deployments", 1000, "small deployments")
    number("replicas", 3, "pods of each")
    number("large", 300, "pods of the large deployment")
    number("namespaces", 20, "namespaces that they are spread over")
    number("changes", 40, "changes of the large deployment under each condition")
    number("many", 300, "deployments that are changed at once")
    parser.add_argument("--dry", action="store_true", help="print the numbers and write no file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
