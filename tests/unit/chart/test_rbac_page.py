"""docs/reference/rbac.md: each rule of the chart with its reason, and what Helm renders is what it says."""

import pytest

from tests.chart import rendered
from tools.generate_rbac import TARGET, Right, Unexplained, documented, read, render, rights

TEXT = """\
{{- define "x" -}}
# Why one,
# in two lines.
- apiGroups: [""]
  resources: [pods, services]
  verbs: [list]
# Why two.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get]
{{- end -}}
"""


def test_the_comment_above_a_rule_is_its_reason() -> None:
    first, second = read(TEXT)
    assert (first.why, second.why) == ("Why one, in two lines.", "Why two.")
    assert set(rights([first.rule])) == {Right("", "pods", "list"), Right("", "services", "list")}


def test_a_rule_without_a_reason_is_named() -> None:
    with pytest.raises(Unexplained, match="above the rule for deployments"):
        list(read(TEXT.replace("# Why two.\n", "")))


def test_what_helm_renders_is_what_the_page_lists() -> None:
    (role,) = (m for m in rendered() if m["kind"] == "ClusterRole")
    assert set(rights(role["rules"])) == documented()
    (paths,) = (rule["nonResourceURLs"] for rule in role["rules"] if "nonResourceURLs" in rule)
    assert all(f"`{path}`" in render() for path in paths)


def test_the_page_is_up_to_date() -> None:
    assert TARGET.read_text() == render(), "run python -m tools.generate_rbac"
