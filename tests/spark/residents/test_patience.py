"""Deadlines of dispatches: generous, by what units of the same kind took, and longer after each that was in vain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freshet.spark.driver.residents.patience import Patience

KINDS = st.sampled_from(["a", "b"])
TOOK = st.tuples(KINDS, st.integers(1, 10**7), st.floats(0.0, 1000.0))


@given(st.lists(TOOK, max_size=20), KINDS, st.integers(1, 10**7))
def test_what_was_answered_once_gets_at_least_twenty_times_as_long(
    took: list[tuple[str, int, float]], kind: str, tuples: int
) -> None:
    patience = Patience(None)
    for each in took:
        patience.took(*each)
    deadline = patience.deadline(0.0, kind, tuples)
    longest = max([seconds for other, count, seconds in took if other == kind and count <= tuples], default=0.0)
    assert deadline >= max(60.0, 20.0 * longest)


def test_other_kinds_neither_shorten_nor_lengthen_a_deadline() -> None:
    patience = Patience(None)
    for waits in range(1, 4):
        patience.in_vain("slow")
        patience.took("quick", 10, 0.001)
        assert patience.deadline(0.0, "slow", 10) == 60.0 * 2**waits
        assert patience.deadline(0.0, "quick", 10) == 60.0
    patience.took("slow", 10, 100.0)
    assert patience.deadline(0.0, "slow", 10) == 2000.0


def test_a_limit_is_a_limit() -> None:
    patience = Patience(30.0)
    patience.in_vain("q")
    assert patience.deadline(5.0, "q", 10) == 35.0


def test_only_so_many_kinds_are_remembered() -> None:
    patience = Patience(None)
    for number in range(3000):
        patience.in_vain(str(number))
    assert len(patience._kinds) == 1000
    assert patience.deadline(0.0, "2999", 1) == 120.0
    assert patience.deadline(0.0, "0", 1) == 60.0
