"""The CRD on a real API server: what it refuses and with which words, and what it takes."""

from pathlib import Path

import pytest

from dsd_operator.api import parse
from tests.contract.accepted import ACCEPTED
from tests.contract.admission import Admission, Case, Refused
from tests.contract.changes import REFUSED, TAKEN
from tests.contract.rejected import REJECTED

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def admission(api_server: Path) -> Admission:
    return Admission(api_server)


@pytest.mark.parametrize("case", REJECTED, ids=lambda case: case.name)
def test_refuses_with_words_that_help(admission: Admission, case: Case) -> None:
    with pytest.raises(Refused) as refused:
        admission.create(case.body())
    assert refused.value.status in (400, 422)
    assert case.message in refused.value.message


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_accepts(admission: Admission, case: Case) -> None:
    stored = admission.create(case.body())
    assert parse(stored).metadata.name == stored["metadata"]["name"]


@pytest.mark.parametrize(("before", "case"), REFUSED, ids=lambda case: getattr(case, "name", ""))
def test_refuses_a_change_with_words_that_help(admission: Admission, before: str, case: Case) -> None:
    with pytest.raises(Refused) as refused:
        admission.change(Case("before", before).body(), case.body())
    assert refused.value.status == 422
    assert case.message in refused.value.message


@pytest.mark.parametrize(("before", "case"), TAKEN, ids=lambda case: getattr(case, "name", ""))
def test_takes_a_change(admission: Admission, before: str, case: Case) -> None:
    admission.change(Case("before", before).body(), case.body())


def test_tables_are_large_and_names_differ() -> None:
    assert len(REJECTED) >= 60
    assert len(ACCEPTED) >= 30
    for table in (REJECTED, ACCEPTED):
        assert len({case.name for case in table}) == len(table)
