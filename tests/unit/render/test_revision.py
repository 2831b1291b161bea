"""Minting: the new number is above everything that runs, and a number is kept while nothing changed."""

from hypothesis import given
from hypothesis import strategies as st

from dsd_operator.render.revision import next_revision, owner_of
from dsd_runtime.protocol import ConfigFile, Revision
from dsd_runtime.schedule import Ranges, from_triples
from tests.unit.resources import resource

A: Ranges = from_triples([(1, 8, 3)])
B: Ranges = from_triples([(1, 8, 2)])
OWNER = "team-a/demo/uid"
NOW = 1_800_000_000_000


def content(number: int, ranges: Ranges = A, owner: str = OWNER) -> ConfigFile:
    return ConfigFile(revision=Revision(owner=owner, number=number), ranges=ranges)


def seen(*numbers: int) -> list[Revision]:
    return [Revision(owner=OWNER, number=number) for number in numbers]


def test_nothing_changed_keeps_the_revision() -> None:
    assert next_revision(OWNER, A, content(5), seen(5, 4), NOW) == Revision(owner=OWNER, number=5)


def test_another_schedule_gets_a_number_of_its_own() -> None:
    assert next_revision(OWNER, B, content(5), seen(5), NOW).number == NOW
    assert next_revision(OWNER, B, content(NOW + 9), seen(NOW + 3), NOW).number == NOW + 10


def test_a_recreated_resource_does_not_reuse_the_old_ones_number() -> None:
    minted = next_revision(OWNER, A, content(NOW + 5, owner="team-a/demo/old"), [], NOW)
    assert minted == Revision(owner=OWNER, number=NOW + 6)


def test_a_pod_that_is_ahead_forces_a_new_number() -> None:
    """A ConfigMap restored from a backup carries an old number, which the pod would refuse as stale."""
    assert next_revision(OWNER, A, content(5), seen(NOW + 1), NOW).number == NOW + 2


def test_a_pod_with_the_same_number_of_another_owner_forces_a_new_one() -> None:
    other = Revision(owner="somebody", number=5)
    assert next_revision(OWNER, A, content(5), [other], NOW).number > 5


def test_a_missing_or_unreadable_config_map_starts_above_the_pods() -> None:
    assert next_revision(OWNER, A, None, seen(NOW + 7), NOW).number == NOW + 8
    assert next_revision(OWNER, A, ConfigFile(ranges=A), [], NOW).number == NOW


def test_the_owner_names_the_very_object() -> None:
    assert owner_of(resource()) == "team-a/demo/11111111-2222"


@given(
    st.none() | st.builds(content, st.integers(1, 2**53 - 2), st.sampled_from([A, B]), st.sampled_from([OWNER, "x"])),
    st.lists(st.builds(Revision, owner=st.sampled_from([OWNER, "x"]), number=st.integers(1, 2**53 - 2)), max_size=3),
)
def test_a_minted_number_is_above_all_known_ones(current: ConfigFile | None, known: list[Revision]) -> None:
    minted = next_revision(OWNER, A, current, known, NOW)
    everything = [*known, *([current.revision] if current and current.revision else [])]
    assert minted.owner == OWNER
    assert all(r.number < minted.number or r == minted for r in everything)


def test_the_largest_number_does_not_crash() -> None:
    assert next_revision(OWNER, A, None, seen(2**53 - 1), NOW).number == 2**53 - 1
