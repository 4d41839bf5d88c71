"""The number set against a plain set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freshet.policies.ratio.number_set import NumberSet

NUMBERS = st.integers(0, 3000)


@given(st.lists(st.tuples(st.booleans(), NUMBERS)), NUMBERS)
def test_it_is_a_set_that_knows_its_order(changes: list[tuple[bool, int]], start: int) -> None:
    numbers, plain = NumberSet(), set[int]()
    for add, number in changes:
        if add:
            numbers.add(number)
            plain.add(number)
        else:
            numbers.discard(number)
            plain.discard(number)
        assert (number in numbers) == (number in plain)
    assert bool(numbers) == bool(plain)
    assert numbers.largest() == max(plain, default=None)
    assert numbers.following(start) == min((number for number in plain if number >= start), default=None)
