"""Descriptions of the chart's values: read from the comments, and found in schema and README."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tools import chart_values
from tools.chart_values import BEGIN, CHART, END, UndocumentedError, described, read, table, with_table

TEXT: Final = """\
# What the file is for; not of the first value.

image:
  # Where it lies,
  # registry included.
  repository: x
  # A | in it.
  tag: ""

# A value as a whole.
resources:
  limits: {memory: 1Gi}

# A section.
policy:
  # A list.
  from: [a]
"""


def test_a_comment_belongs_to_the_value_below_it() -> None:
    found = {value.name: (value.description, value.default) for value in read(TEXT)}
    assert found == {
        "image.repository": ("Where it lies, registry included.", '"x"'),
        "image.tag": ("A | in it.", '""'),
        "resources": ("A value as a whole.", '{"limits": {"memory": "1Gi"}}'),
        "policy": ("A section.", None),
        "policy.from": ("A list.", '["a"]'),
    }


def test_a_value_without_a_comment_is_named_with_its_line() -> None:
    with pytest.raises(UndocumentedError, match=r"line 4: there is no comment above a\.c"):
        read("a:\n  # About b.\n  b: 1\n  c: 2\n")


def test_a_comment_after_an_empty_line_is_not_taken() -> None:
    with pytest.raises(UndocumentedError):
        read("# About the file.\n\na: 1\n")


def test_the_table_holds_what_markdown_needs() -> None:
    assert table(read(TEXT)).splitlines()[2:5] == [
        '| `image.repository` | `"x"` | Where it lies, registry included. |',
        '| `image.tag` | `""` | A \\| in it. |',
        '| `resources` | `{"limits": {"memory": "1Gi"}}` | A value as a whole. |',
    ]


def test_the_rest_of_the_readme_stays() -> None:
    page = f"before\n{BEGIN}old\n{END}after\n"
    values = read(TEXT)
    assert with_table(page, values) == f"before\n{BEGIN}{table(values)}{END}after\n"
    with pytest.raises(ValueError, match="no place for the table"):
        with_table("no marks", values)


def test_the_schema_gets_the_descriptions_and_must_know_every_value() -> None:
    values = read("# One.\na: 1\n")
    text = described({"properties": {"a": {"description": "old"}}}, values)
    assert json.loads(text) == {"properties": {"a": {"description": "One."}}}
    with pytest.raises(UndocumentedError, match="does not know a"):
        described({"properties": {}}, values)


def test_the_checked_in_files_are_the_generated_ones() -> None:
    for path, wanted in chart_values.files().items():
        assert path.read_text(encoding="utf-8") == wanted, f"{path.name} is out of date: make generate"


def _nodes(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, node
    for name, below in node.get("properties", {}).items():
        yield from _nodes(below, f"{path}.{name}")
    if isinstance(node.get("items"), Mapping):
        yield from _nodes(node["items"], f"{path}[]")


SCHEMA: Final = json.loads((CHART / chart_values.SCHEMA).read_text())
NODES: Final = list(_nodes(SCHEMA))


def test_every_part_of_the_schema_is_described() -> None:
    assert [path for path, node in NODES if path and not node.get("description")] == []


def test_no_section_takes_keys_that_it_does_not_know() -> None:
    open_ = [path for path, node in NODES if "properties" in node and node.get("additionalProperties") is not False]
    assert open_ == []


def test_every_value_is_in_values_yaml_and_nothing_else() -> None:
    """The schema allows nothing at the levels of values.yaml that it does not show, but `global`, which is Helm's."""
    sections = {value.path for value in read((CHART / chart_values.VALUES).read_text())}
    shown = {path[: n + 1] for path in sections for n in range(len(path))}
    parents = {path[:-1] for path in shown}
    allowed = set()
    for parent in parents:
        node = SCHEMA
        for step in parent:
            node = node["properties"][step]
        allowed |= {(*parent, name) for name in node.get("properties", {})}
    assert allowed - {("global",)} == shown
