"""Write the generated tables in pages that people write.

They stand between `<!-- begin NAME -->` and `<!-- end -->`. Run it (`python -m tools.generate_tables`) after a change
of the operator's settings, metrics or reasons; `--check` only compares.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from prometheus_client.metrics import MetricWrapperBase

from dsd_operator.metrics import Metrics
from dsd_operator.settings import Settings, default_text, variable
from dsd_operator.status.meanings import MEANINGS
from dsd_operator.status.reasons import Reason
from dsd_operator.status.states import STATES, Standing

_ROOT: Final = Path(__file__).resolve().parents[1]
_REGION: Final = re.compile(r"(<!-- begin ([a-z-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def settings() -> Iterator[str]:
    """The operator's environment variables."""
    yield "| Variable | Default | Meaning |\n|---|---|---|\n"
    for name, field in Settings.model_fields.items():
        default = default_text(name)
        shown = "required" if field.is_required() else f"`{default}`" if default else "empty"
        yield f"| `{variable(name)}` | {shown} | {field.description} |\n"


def operator_metrics() -> Iterator[str]:
    """The operator's metrics, as its registry describes them."""
    yield "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"
    registry = Metrics("").registry
    for collector in registry._collector_to_names:
        assert isinstance(collector, MetricWrapperBase), "we register nothing else"
        (family,) = collector.describe()
        labels = ", ".join(f"`{label}`" for label in collector._labelnames)
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n"


def reasons() -> Iterator[str]:
    """Every reason with its meaning."""
    yield "| Reason | Means | What to do |\n|---|---|---|\n"
    yield from (f"| `{reason}` | {text.means} | {text.remedy} |\n" for reason, text in MEANINGS.items())


def states() -> Iterator[str]:
    """Every state with its conditions."""
    yield "| State | Available | Progressing | ScheduleApplied | Ready | Warning Events |\n|---|---|---|---|---|---|\n"
    for state in STATES:
        cells = (_cell(standing) for standing in state.standings.values())
        warnings = ", ".join(f"`{reason}`" for reason in state.warns)
        yield f"| **{state.name}**: {state.means} | {' | '.join(cells)} | {warnings or '-'} |\n"


def _cell(standing: Standing) -> str:
    more = " or like it" if standing.also - {standing.reason} else ""
    return f"{standing.status} `{standing.reason}`{more}"


def states_alike() -> Iterator[str]:
    """What "or like it" means in that table."""
    for state in STATES:
        for kind, standing in state.standings.items():
            others = [f"`{reason}`" for reason in Reason if reason in standing.also - {standing.reason}]
            if others:
                yield f"- *{state.name}*, {kind}: {', '.join(others)}\n"


TABLES: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "settings": settings,
    "operator-metrics": operator_metrics,
    "reasons": reasons,
    "states": states,
    "states-alike": states_alike,
}


def render(text: str) -> str:
    """The page with its tables as they are now; KeyError for a table that there is not."""
    return _REGION.sub(lambda found: found[1] + "".join(TABLES[found[2]]()) + found[4], text)


def main() -> int:
    """Write the tables, or with --check compare them; 1 when one differs."""
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tools.generate_tables", description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a table is out of date")
    check, outdated = parser.parse_args().check, 0
    for page in sorted((_ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (current := render(text)) != text:
            outdated += 1
            print(f"{page.name} {'is out of date; run python -m tools.generate_tables' if check else 'written'}")
            if not check:
                page.write_text(current, encoding="utf-8")
    return int(check and outdated > 0)


if __name__ == "__main__":
    sys.exit(main())
