"""Answers depend on the log alone: whatever the trains, the policy, the workers, and a crash in the middle.

Logs and queries are drawn at random, the queries from the grammar in :mod:`tests.engine.grammar`. DuckDB gives the
answer in one batch, from the abstract form of a query and without any part of Freshet.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.engine.grammar.cases import Case, draw_case
from tests.engine.grammar.draws import FORMS
from tests.engine.grammar.judge import check
from tests.engine.grammar.reduce import reduced

QUICK, LONG = 270, 11_250
"""Queries in all; a case has one to three, all over the same log."""


@pytest.mark.timeout(0)
@pytest.mark.parametrize("form", FORMS)
def test_answers_are_those_of_one_batch(form: str) -> None:
    _run(form, math.ceil(QUICK / len(FORMS)))


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("form", FORMS)
def test_answers_are_those_of_one_batch_in_thousands_of_cases(form: str) -> None:
    _run(form, math.ceil(LONG / len(FORMS)))


def _run(form: str, queries: int) -> None:
    judged = []

    # The seed is all that hypothesis draws: where it has more to vary, it varies a case again and again, and four cases
    # of five are nearly the same. A smaller seed is no smaller case, so what fails is made smaller by other means.
    # A case has two queries on average.
    @settings(max_examples=queries * 3 // 4, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    @given(seed=st.integers(0, 2**48))
    def each(seed: int) -> None:
        case = draw_case(form, seed)
        try:
            judged.append(check(case))
        except Exception as error:
            kind = type(error)
            check(reduced(case, lambda other: _fails(other, kind)))
            raise

    each()
    total, answered = map(sum, zip(*judged, strict=True))
    assert total >= queries
    # Of queries that count rows only about half have an answer, so for them a bound of a half would fail by chance.
    least = 0.25 if form == "counted" else 0.5
    assert answered >= least * total, "too few queries have an answer: such a test would find nothing"


def _fails(case: Case, kind: type[Exception]) -> bool:
    """Whether a case fails with such an error."""
    try:
        check(case)
    except Exception as error:
        return type(error) is kind
    return False
