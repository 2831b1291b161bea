"""The expressions of docs/how-to/gitops.md by which Flux judges a DSDDeployment, evaluated over every state.

They are CEL, as admission policies are, so a real API server evaluates them: one that refuses every status of this
namespace, and says in its words what the expressions make of it. (Flux' own rules of kstatus, and Argo CD's script, are
run by test_states over each state as the operator brings it about.)
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from dsd_operator.status.states import STATES
from tests.integration.world import NAME, World
from tests.states import PAGE, expected_health
from tools.testbed.kube import Json
from tools.testbed.waiting import wait_for

pytestmark = pytest.mark.integration

GROUP: Final = "admissionregistration.k8s.io/v1"
VERDICTS: Final = {"Healthy": "current", "Progressing": "inProgress", "Degraded": "failed"}
"""Argo CD's words, and the expression that holds then."""


def expressions() -> dict[str, str]:
    """Of the page, by their names in Flux."""
    found = re.search(r"^kind: Kustomization$.*?(?=^```)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    (rule,) = yaml.safe_load(found[0])["spec"]["healthCheckExprs"]
    assert (rule["apiVersion"], rule["kind"]) == ("dsd-operator.io/v1alpha1", "DSDDeployment")
    return {name: rule[name] for name in VERDICTS.values()}


@pytest.fixture
def judged(world: World) -> Iterator[World]:
    """Every status in the namespace is refused, with the names of the expressions that hold for it."""
    world.create()
    judge(world)
    yield world
    world.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", world.namespace)


def judge(world: World) -> None:
    """Bring the API server a policy with the expressions in it."""
    rule = {"apiGroups": ["dsd-operator.io"], "apiVersions": ["*"], "operations": ["UPDATE"]}
    constraints = {
        "resourceRules": [{**rule, "resources": ["dsddeployments/status"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
    }
    # In Flux the parts of an object are variables, here it is one.
    rooted = re.compile(r"\bstatus\.conditions\b")
    words = " + ".join(
        f"(({rooted.sub('object.status.conditions', expression)}) ? ' {name}' : '')"
        for name, expression in expressions().items()
    )
    refusal = {"expression": "false", "messageExpression": f"'holds:' + {words} + '.'"}
    spec = {"matchConstraints": constraints, "validations": [refusal]}
    meta = {"name": world.namespace}
    world.apply({"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": meta, "spec": spec})
    binding = {"policyName": world.namespace, "validationActions": ["Deny"]}
    world.apply({"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta, "spec": binding})


def holds(world: World, **conditions: str) -> list[str] | None:
    """The expressions that hold for a status with these conditions; None while nobody judges yet."""
    made = [condition(kind, status) for kind, status in conditions.items()]
    body = json.dumps({"status": {"observedGeneration": 1, "conditions": made}})
    arguments = ("patch", "dsd", NAME, "--subresource=status", "--type=merge", "--dry-run=server", "-p", body)
    try:
        world.kubectl(*arguments)
    except AssertionError as refused:
        (found,) = re.findall(r"holds:([\w ]*)\.", str(refused))
        return str(found).split()
    return None


def condition(kind: str, status: str) -> Json:
    """One of a status."""
    times: dict[str, Any] = {"lastTransitionTime": "2030-01-01T00:00:00Z", "observedGeneration": 1}
    return {"type": kind, "status": status, "reason": "Some", "message": "", **times}


def test_flux_knows_by_the_expressions_whether_to_wait(judged: World) -> None:
    wait_for("the policy", lambda: holds(judged, Ready="True", Progressing="False"), lambda held: held is not None, 30)
    seen = {}
    for state in STATES:
        kinds = {kind.value: standing.status for kind, standing in state.standings.items()}
        key = tuple(kinds.items())
        if key not in seen:  # reasons are nothing that the expressions look at
            seen[key] = holds(judged, **kinds)
        assert seen[key] == [VERDICTS[expected_health(state)["argo"]]], state.name
    assert {name for held in seen.values() for name in held or ()} == set(VERDICTS.values())
