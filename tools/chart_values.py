"""The chart's values, described once: the comment above each value of values.yaml is its description everywhere.

`python -m tools.chart_values` writes these comments into values.schema.json and, as a table, into the chart's README;
`--check` only compares. The rest of both files is written by hand. See `tools.chart` for the CRD's template.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tools.cluster.paths import REPOSITORY

CHART: Final = REPOSITORY / "charts" / "dsd-operator"
VALUES: Final = "values.yaml"
SCHEMA: Final = "values.schema.json"
README: Final = "README.md"
BEGIN: Final = "<!-- values: written by `make generate` from the comments in values.yaml -->\n"
END: Final = "<!-- end of values -->\n"

Steps = tuple[str, ...]


class UndocumentedError(ValueError):
    """A value has no comment, or the schema does not know it; the text names it."""


@dataclass(frozen=True)
class Value:
    """One value, or a section of values where `default` is None."""

    path: Steps
    description: str
    default: str | None

    @property
    def name(self) -> str:
        """As `--set` spells it."""
        return ".".join(self.path)


def read(text: str) -> list[Value]:
    """The values of a values.yaml with their comments, in its order; UndocumentedError where one has none."""
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode), "values.yaml holds one mapping"
    return list(_walk(root, text.splitlines(), ()))


def _walk(node: yaml.MappingNode, lines: Sequence[str], above: Steps) -> Iterator[Value]:
    for key, value in node.value:
        path, comment = (*above, str(key.value)), _comment(lines, key.start_mark.line)
        if _is_section(value, lines):
            if comment:
                yield Value(path, comment, None)
            yield from _walk(value, lines, path)
        elif not comment:
            where = f"{VALUES}, line {key.start_mark.line + 1}"
            raise UndocumentedError(f"{where}: there is no comment above {'.'.join(path)}")
        else:
            yield Value(path, comment, json.dumps(yaml.safe_load(yaml.serialize(value))))


def _is_section(node: yaml.Node, lines: Sequence[str]) -> bool:
    """Whether it is a mapping whose own values are described; else it is a value as a whole."""
    if not isinstance(node, yaml.MappingNode):
        return False
    return any(_comment(lines, key.start_mark.line) or _is_section(value, lines) for key, value in node.value)


def _comment(lines: Sequence[str], number: int) -> str:
    """The comment right above a line, at the line's own indentation, as one line."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    found: list[str] = []
    for line in reversed(lines[:number]):
        text = line.lstrip()
        if not text.startswith("#") or len(line) - len(text) != indent:
            break
        found.append(text.removeprefix("#").strip())
    return " ".join(reversed(found))


def described(schema: dict[str, Any], values: Sequence[Value]) -> str:
    """The schema's text with the descriptions of `values`; UndocumentedError for a value that it does not know."""
    for value in values:
        node = schema
        for step in value.path:
            node = node.get("properties", {}).get(step)
            if node is None:
                raise UndocumentedError(f"{SCHEMA} does not know {value.name}")
        node["description"] = value.description
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def table(values: Sequence[Value]) -> str:
    """The values as a Markdown table."""
    leaves = [(value, value.default) for value in values if value.default is not None]
    rows = [f"| `{v.name}` | `{_escaped(default)}` | {_escaped(v.description)} |\n" for v, default in leaves]
    return "| Value | Default | Meaning |\n|---|---|---|\n" + "".join(rows)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def with_table(readme: str, values: Sequence[Value]) -> str:
    """The README with this table between its two marks; ValueError if they are not there."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{README} has no place for the table of values: {BEGIN.strip()} … {END.strip()}")
    return f"{head}{BEGIN}{table(values)}{END}{tail}"


def files(chart: Path = CHART) -> dict[Path, str]:
    """What the generated files should hold."""
    values = read((chart / VALUES).read_text(encoding="utf-8"))
    schema = json.loads((chart / SCHEMA).read_text(encoding="utf-8"))
    readme = (chart / README).read_text(encoding="utf-8")
    return {chart / SCHEMA: described(schema, values), chart / README: with_table(readme, values)}


def main() -> int:
    """Write both files, or with --check compare them; 1 when one differs."""
    text = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tools.chart_values", description=text)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is out of date")
    check, late = parser.parse_args().check, 0
    for path, wanted in files().items():
        if not check:
            path.write_text(wanted, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != wanted:
            print(f"{path.relative_to(REPOSITORY)} is out of date; run python -m tools.chart_values", file=sys.stderr)
            late = 1
    return late


if __name__ == "__main__":
    sys.exit(main())
