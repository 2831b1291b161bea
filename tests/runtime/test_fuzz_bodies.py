"""Whatever PUT or the config file says, in whatever order: every answer is a documented one, the schedule in force is
the one that must be, and the engine serves as before.

The short cut runs with the other engine tests; the campaign is `make test-long` (docs/development/campaigns.md).
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as start_at
from hypothesis import strategies as st

from tests.runtime.conftest import Engine
from tests.runtime.fuzz_bodies import recipes
from tests.runtime.fuzz_campaign import CHECK_EVERY, MAXIMUM, Campaign
from tests.runtime.fuzz_files import writes
from tests.runtime.fuzz_random import Progress, again, seed

pytestmark = pytest.mark.engine

SHORT = 300
LONG = 10_000


def run(engine: Engine, bodies: int) -> Campaign:
    """Send so many bodies, and every thirtieth action or so rewrite the config file."""
    number = seed()
    campaign = Campaign(engine)
    progress = Progress(f"bodies {again(number)}", bodies)

    @settings(
        max_examples=bodies + bodies // 8 + 20,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @start_at(number)
    @given(st.integers(0, 29).flatmap(lambda kind: writes(MAXIMUM) if kind == 0 else recipes(MAXIMUM)))
    def act(action: object) -> None:
        if sum(campaign.answers.values()) < bodies:
            campaign.step(action)  # type: ignore[arg-type]
            progress.at(sum(campaign.answers.values()), str(dict(campaign.answers)))

    try:
        act()
    except BaseException as error:
        error.add_note(again(number))
        raise
    campaign.settle()
    print(f"bodies {again(number)}: {dict(campaign.answers)}, files {dict(campaign.written)}, cut {campaign.cut_off}")
    return campaign


def check_coverage(campaign: Campaign, bodies: int) -> None:
    """The campaign was one: all answers there are came (the rare ones not in every short run), the main ones often."""
    assert sum(campaign.answers.values()) == bodies
    rare = {401, 403, 409, 413} if bodies < LONG else set()
    assert set(campaign.answers) | rare == {200, 400, 401, 403, 409, 413, 422}
    assert all(campaign.answers[status] >= bodies / 40 for status in (200, 400, 422))
    assert sum(campaign.written.values()) >= bodies / 300
    if bodies >= LONG:
        assert campaign.written["good"] >= bodies / 300
        assert sum(campaign.written.values()) - campaign.written["good"] >= bodies / 300


def test_bodies(engine: Engine) -> None:
    check_coverage(run(engine, SHORT), SHORT)


@pytest.mark.long
def test_bodies_campaign(engine: Engine) -> None:
    check_coverage(run(engine, LONG), LONG)
    assert LONG // CHECK_EVERY > 50
