"""Our schedule against vLLM's own code: the same lookup, and every table it refuses or clamps is refused."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dsd_runtime.schedule import (
    MAX_SPECULATIVE_TOKENS,
    Lookup,
    Ranges,
    default_prepared_tokens,
    from_triples,
    superset_triples,
    to_triples,
    validate,
)
from tests.unit.runtime_core import vllm_source
from tests.unit.runtime_core.strategies import MAXIMA, TABLES, nearly_valid_tables, valid_ranges

ORACLE: Any = vllm_source.load("v1/spec_decode/dynamic/utils.py")

Table = list[tuple[int, int, int]]


def _dense(table: Any, max_num_seqs: int, maximum: int) -> list[int]:
    dense: list[int] = ORACLE.build_dynamic_sd_schedule_lookup(table, max_num_seqs, maximum)
    return dense


@st.composite
def valid_cases(draw: st.DrawFn) -> tuple[Ranges, int]:
    maximum = draw(MAXIMA)
    return draw(valid_ranges(maximum)), maximum


@settings(max_examples=500)
@given(valid_cases(), st.integers(1, 2000))
def test_lookup_equals_vllms_for_every_valid_table(case: tuple[Ranges, int], max_num_seqs: int) -> None:
    ranges, maximum = case
    assert validate(ranges, maximum) == []
    lookup = Lookup.of(ranges)
    assert [lookup(n) for n in range(1, max_num_seqs + 1)] == _dense(to_triples(ranges), max_num_seqs, maximum)[1:]


def _vllm_takes_it_as_it_is(table: Table, maximum: int) -> bool:
    """vLLM accepts the table, in its order, and lowers no K."""
    try:
        normalised = ORACLE.validate_and_normalize_dynamic_sd_schedule(table)
    except ValueError:
        return False
    return normalised == table and all(k <= maximum for _, _, k in table)


def _we_take_it(table: Table, maximum: int) -> bool:
    try:
        ranges = from_triples(table)
    except ValidationError:
        return False
    return validate(ranges, maximum) == []


@settings(max_examples=1000)
@given(TABLES, st.integers(1, 8))
def test_arbitrary_tables_are_judged_as_vllm_does(table: Table, maximum: int) -> None:
    """One deliberate difference besides clamping: vLLM sorts an unsorted table, we refuse it."""
    assert _we_take_it(table, maximum) == _vllm_takes_it_as_it_is(table, maximum)


@settings(max_examples=1000)
@given(nearly_valid_tables(), st.integers(1, 8))
def test_nearly_valid_tables_are_judged_as_vllm_does(table: Table, maximum: int) -> None:
    assert _we_take_it(table, maximum) == _vllm_takes_it_as_it_is(table, maximum)


@given(st.sets(st.integers(0, MAX_SPECULATIVE_TOKENS), min_size=1, max_size=40), st.integers(1, 1100))
def test_superset_is_valid_for_vllm_and_covers_the_largest_k(prepared: set[int], max_num_seqs: int) -> None:
    table = superset_triples(sorted(prepared), max_num_seqs)
    dense = _dense(table, max_num_seqs, max(max(prepared), 1))
    largest = sorted(prepared, reverse=True)[: min(len(prepared), max_num_seqs)]
    assert set(dense[1:]) == set(largest)
    assert table[-1][1] == max_num_seqs
    assert dense[1] == max(prepared)


@given(st.sets(st.integers(0, 16), min_size=1), st.integers(1, 1100))
def test_superset_gives_every_k_one_of_the_widest_batches(prepared: set[int], max_num_seqs: int) -> None:
    """vLLM sizes the graphs of a K by the widest batch that uses it."""
    table = superset_triples(sorted(prepared), max_num_seqs)
    assert all(end > max_num_seqs - len(table) for _, end, _ in table)


@given(MAXIMA, st.integers(1, 1100))
def test_default_prepared_tokens_make_a_table_vllm_takes(maximum: int, max_num_seqs: int) -> None:
    dense = _dense(superset_triples(default_prepared_tokens(maximum), max_num_seqs), max_num_seqs, maximum)
    assert max(dense) == maximum
