from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from freshet.bench.interleave import interleave


@given(st.integers(0, 9), st.integers(1, 4))
def test_every_side_runs_once_in_each_round_and_leads_in_turn(rounds, count):
    order: list[str] = []
    names = [f"s{number}" for number in range(count)]

    def side(name: str) -> int:
        order.append(name)
        return len(order)

    advanced: list[None] = []
    found = interleave({name: partial(side, name) for name in names}, rounds, lambda: advanced.append(None))
    assert len(advanced) == rounds
    assert all(len(found[name]) == rounds for name in names)
    for number in range(rounds):
        part = order[number * count : (number + 1) * count]
        assert part == (names if number % 2 == 0 else names[::-1])
