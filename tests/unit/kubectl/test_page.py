"""docs/reference/kubectl-dsd.md names what programs may meet."""

import re

from dsd_operator.status.reasons import Reason
from kubectl_dsd.main import COMMANDS
from tools.cluster.paths import REPOSITORY
from tools.generate_kubectl import render

_MADE = re.compile(r'(?:error|warning|info|kind)\(\s*"([A-Z][A-Za-z]+)"')


def test_the_page_names_every_command() -> None:
    page = render()
    assert [name for name in COMMANDS if f"## kubectl dsd {name}\n" not in page] == []


def test_the_page_names_every_reason_of_explain() -> None:
    modules = (REPOSITORY / "kubectl" / "kubectl_dsd" / "explain").glob("*.py")
    made = {reason for module in modules for reason in _MADE.findall(module.read_text())}
    listed = re.search(r"which only `explain` knows: (.*?), and a", render(), re.DOTALL)
    assert listed is not None
    assert made - {reason.value for reason in Reason} == set(re.findall(r"`(\w+)`", listed[1]))
