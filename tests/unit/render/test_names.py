"""Names of children: every legal name of a resource must give valid names that no other resource shares."""

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsd_operator.render.names import MAX_BASE_LENGTH, names_for

DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

_PART: Final = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?", fullmatch=True)
SUBDOMAINS: Final = st.lists(_PART, min_size=1, max_size=8).map(".".join).filter(lambda name: len(name) <= 253)


@given(SUBDOMAINS)
def test_every_legal_name_gives_valid_names(name: str) -> None:
    names = names_for(name)
    assert DNS_1035.fullmatch(names.base)
    assert len(names.base) <= MAX_BASE_LENGTH
    assert LABEL_VALUE.fullmatch(names.label)
    assert len(names.label) <= 63
    assert names_for(name) == names


@given(SUBDOMAINS, SUBDOMAINS)
def test_two_resources_never_share_a_name(one: str, other: str) -> None:
    if one != other:
        assert names_for(one).base != names_for(other).base
        assert names_for(one).label != names_for(other).label


@given(SUBDOMAINS)
def test_a_resource_named_like_an_altered_name_does_not_take_it(name: str) -> None:
    taken = names_for(name)
    if taken.base != name:
        assert names_for(taken.base).base != taken.base
    if taken.label != name:
        assert names_for(taken.label).label != taken.label


@pytest.mark.parametrize("name", ["demo", "vllm", "dsd", "prometheus-multiproc", "a" * 50])
def test_a_name_that_fits_is_kept(name: str) -> None:
    assert names_for(name).base == name


@pytest.mark.parametrize(
    "name", ["tiny-llama-v0.1", "70b-chat", "123", "a" * 51, "a" * 63, "a" * 64, "a.b" * 66, "default", "kubernetes"]
)
def test_a_name_that_does_not_fit_carries_a_hash(name: str) -> None:
    assert re.fullmatch(r".+-[0-9a-f]{10}", names_for(name).base)


def test_long_names_that_differ_in_the_last_character_differ() -> None:
    one, other = names_for("a" * 79 + "b"), names_for("a" * 79 + "c")
    assert one.base != other.base
    assert one.label != other.label


@pytest.mark.parametrize("name", ["demo", "tiny-llama-v0.1", "70b-chat", "a" * 63])
def test_the_label_is_what_the_user_typed_where_it_can_be(name: str) -> None:
    assert names_for(name).label == name
