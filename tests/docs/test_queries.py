"""Every query of the documentation is PromQL, and asks for series that we have."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import yaml

from dsd_operator.metrics import Metrics
from dsd_runtime.catalogue import FAMILIES
from tests.docs.blocks import Block, all_blocks
from tools.monitoring.programs import promtool

_ENDINGS: Final = re.compile(r"_(bucket|sum|count)$")
_QUERY_BEGINS: Final = re.compile(r"\n(?=\S)")
"""A line that is not indented."""


def queries_of(found: Iterable[Block]) -> list[str]:
    """The queries in these blocks, in order."""
    texts = (block.text.strip() for block in found if block.language == "promql")
    return [query for text in texts for query in _QUERY_BEGINS.split(text)]


def _queries() -> list[str]:
    return queries_of(all_blocks())


def test_prometheus_parses_every_query(tmp_path: Path) -> None:
    """Each as a rule."""
    rules = [{"record": f"docs:query:{number}", "expr": query} for number, query in enumerate(_queries())]
    assert len(rules) > 10
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "docs", "rules": rules}]}))
    done = subprocess.run([promtool(), "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_series_is_there() -> None:
    ours = {family.sample for family in FAMILIES} | set(Metrics("1").registry._names_to_collectors)
    named = set(re.findall(r"\bdsd_\w+", re.sub(r"\b(?:by|on) \([^)]*\)", "", " ".join(_queries()))))
    assert named
    assert {name for name in named if name not in ours and _ENDINGS.sub("", name) not in ours} == set()
