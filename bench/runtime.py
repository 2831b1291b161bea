"""The runtime's benchmarks: `python -m bench.runtime [sweep|rollout|swapcost …]` (`make bench-runtime`).

Needs the machine for itself: other work shows in every number. `--quick` shows in two minutes that everything works,
and writes nothing into bench/results.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import runtime_rollout, runtime_swapcost, runtime_sweep
from bench.results import RESULTS, Required, Result, environment, write
from bench.runtime_plan import FULL, QUICK, Plan
from bench.runtime_ratios import Rows, rollout_required, swapcost_required, sweep_required
from tools.models import smollm2


@dataclass(frozen=True)
class Part:
    """One benchmark: how to measure it, what it must show, and the text that says how it was done."""

    measure: Callable[[str, Plan], tuple[list[dict[str, Any]], dict[str, str]]]
    required: Callable[[Rows], tuple[Required, ...]]
    method: str


PARTS: Final = {
    "sweep": Part(runtime_sweep.measure, sweep_required, runtime_sweep.METHOD),
    "rollout": Part(runtime_rollout.measure, rollout_required, runtime_rollout.METHOD),
    "swapcost": Part(runtime_swapcost.measure, swapcost_required, runtime_swapcost.METHOD),
}


def run(name: str, model: str, plan: Plan, folder: Path) -> bool:
    """Measure one part and write its file into `folder`; whether everything required is met."""
    part = PARTS[name]
    rows, versions = part.measure(model, plan)
    required = part.required(rows)
    result = Result(environment=environment(versions), method=part.method, data=tuple(rows), required=required)
    print(f"wrote {write(name, result, folder)}")
    for r in required:
        print(f"{'met ' if r.met else 'MISS'} {r.name}: {r.value:.3f} {r.unit} {r.relation} {r.threshold}", flush=True)
    return all(r.met for r in required)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the results; 1 when a required number is not met (never after `--quick`)."""
    parser = argparse.ArgumentParser(prog="python -m bench.runtime", description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a short run that shows that it works; numbers are void")
    parser.add_argument("--model", help="directory of another model (default: SmolLM2-135M-Instruct, made if need be)")
    options = parser.parse_args(arguments)
    if unknown := set(options.part) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    model = options.model or str(smollm2.ensure())
    plan, folder = (QUICK, Path(tempfile.mkdtemp(prefix="dsd-bench-"))) if options.quick else (FULL, RESULTS)
    met = [run(name, model, plan, folder) for name in options.part or PARTS]
    return 0 if options.quick or all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
