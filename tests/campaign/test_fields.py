"""Every field of the spec is set, changed, unset, emptied, refused and reverted; each time the deployment equals a
fresh one with the same spec."""

from collections.abc import Sequence
from typing import Final

import pytest

from tests.campaign.campaign import Campaign
from tests.campaign.conftest import complaints
from tests.campaign.server import Server
from tests.campaign.values import PATHS, WALKED, others_of
from tests.campaign.walks import Walk, chains, emptied, field_walk
from tests.integration.operator_process import OperatorProcess
from tools.generate_fields import fields

pytestmark = pytest.mark.integration

SIDE_BY_SIDE: Final = 40
"""Deployments at a time."""


def test_every_field_of_the_schema_has_values() -> None:
    assert {found.path for found in fields()} == set(PATHS)
    assert [path for path in PATHS if not others_of(path)] == [], "each needs another value in tests/campaign/values.py"


def test_fields_set_one_after_another(server: Server, operator: OperatorProcess) -> None:
    carry_out(server, operator, list(chains()))


@pytest.mark.long
def test_every_field_with_every_value(server: Server, operator: OperatorProcess) -> None:
    carry_out(server, operator, [*(field_walk(path) for path in WALKED), *emptied()])


def carry_out(server: Server, operator: OperatorProcess, walks: Sequence[Walk]) -> None:
    """Run all walks; nothing may be wrong with the deployments, nor with the operator."""
    campaign = Campaign(server)
    for first in range(0, len(walks), SIDE_BY_SIDE):
        told = len(campaign.problems)
        campaign.run(walks[first : first + SIDE_BY_SIDE])
        print(f"\n{min(first + SIDE_BY_SIDE, len(walks))} of {len(walks)} walks: {campaign.told()}", flush=True)
        print("\n".join(campaign.problems[told:]), flush=True)
    assert not campaign.problems, "\n".join(campaign.problems)
    assert complaints(operator) == []
