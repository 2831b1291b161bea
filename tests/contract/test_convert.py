"""What `kubectl dsd convert` prints is accepted by a real API server, strictly, and comes back as the same values."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.admission import Admission
from tests.unit.convert import test_kubernetes as kubernetes
from tests.unit.convert.converted import NGRAM, run
from tests.unit.convert.test_cases_lines import EAGLE, OLD
from tests.unit.convert.test_cases_texts import SCRIPT, YAML
from tests.unit.convert.test_compose import FILE
from tests.unit.convert.test_docker import LINE

pytestmark = pytest.mark.integration

INPUTS = {
    "eagle": f"vllm serve acme/t -tp 4 --served-model-name a b -sc '{json.dumps(EAGLE)}' --max-model-len auto -O3",
    "old": OLD,
    "script": SCRIPT,
    "config": YAML,
    "compose": FILE,
    "docker": LINE,
    "deployment": kubernetes.DEPLOYMENT,
    "runtime": kubernetes.RUNTIME,
    "service": kubernetes.SERVICE,
    "values": kubernetes.VALUES,
}


@pytest.fixture(scope="module")
def admission(api_server: Path) -> Admission:
    return Admission(api_server)


def printed(content: str) -> dict[str, Any]:
    """The YAML as another reader of YAML sees it."""
    found = run("--allow-partial", "-f", "-", text=content)
    assert found.exit_code == 0, found.stderr
    resource: dict[str, Any] = yaml.safe_load(found.stdout)
    resource["metadata"].pop("namespace", None)  # the test server has one
    return resource


def same(sent: Any, stored: Any) -> bool:
    """Whether all that was sent is stored; the API server adds defaults."""
    if isinstance(sent, dict):
        return all(key in stored and same(value, stored[key]) for key, value in sent.items())
    if isinstance(sent, list):
        return len(sent) == len(stored) and all(map(same, sent, stored))
    return bool(sent == stored)


@pytest.mark.parametrize("name", INPUTS)
def test_the_api_server_takes_it(admission: Admission, name: str) -> None:
    sent = printed(INPUTS[name])
    assert same(sent, admission.create(sent))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
def test_any_string_comes_back(admission: Admission, value: str) -> None:
    """Through YAML, and through the API server."""
    line = ["vllm", "serve", "acme/t", "-sc", NGRAM, f"--chat-template={value}"]
    found = run("--allow-partial", "--", *line)
    sent = yaml.safe_load(found.stdout)
    if "not carried over" in found.stderr:
        return  # it looks like a secret
    assert sent["spec"]["engine"]["extraArgs"] == [f"--chat-template={value}"]
    assert same(sent, admission.create(sent))
