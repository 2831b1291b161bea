"""The bodies campaign without an engine: the parser of the route and the rules of the documentation agree."""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from dsd_runtime.protocol import MAX_BODY_BYTES
from dsd_runtime.routes import RequestProblemError, parse_put
from tests.runtime.fuzz_bodies import Recipe, recipes
from tests.runtime.fuzz_rules import Body, Model, read

STATE = Model(4, ((1, 64, 2),), (20, 10), "team-a/demo/uid-1", 100, "file")


def answer(content: bytes) -> tuple[int, Body | None]:
    """What the route's parser makes of a body."""
    if len(content) > MAX_BODY_BYTES:
        return 413, None
    try:
        put = parse_put(content)
    except RequestProblemError as problem:
        return problem.document.status, None
    smoothing = (put.smoothing.dwell_steps, put.smoothing.margin_percent) if put.smoothing else None
    return 200, Body(put.revision.owner, put.revision.number, tuple(r.triple() for r in put.ranges), smoothing)


def test_parser_follows_the_documentation() -> None:
    seen: Counter[int] = Counter()

    @settings(max_examples=300, suppress_health_check=list(HealthCheck))
    @given(recipes(4))
    def agree(recipe: Recipe) -> None:
        content = recipe.content(STATE)
        expected = read(content)
        status, body = answer(content)
        seen[status] += 1
        assert body == expected if isinstance(expected, Body) else status in expected

    agree()
    # A body that is too large is rare among them; test_routes.py has one for certain.
    assert set(seen) | {413} == {200, 400, 413, 422}
