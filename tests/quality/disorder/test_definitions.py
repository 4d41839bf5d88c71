"""The words of WU ch. 3 over whole logs: against their definitions, and the theorems about them."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality.disorder import (
    JoinInput,
    corrected_rows,
    dependent_scrambling,
    joined_dependent,
    joined_input,
    lag,
    multiplicity,
    other_factor,
    published_rows,
    scrambling_factor,
    sorted_lag,
    virtual_index,
    worth_resting,
)

keys = st.lists(st.integers(0, 12), max_size=25)


def by_definition(stream: list[int]) -> int:
    """WU Def. 3.2.2, pair by pair."""
    pairs = [
        at - other
        for at, key in enumerate(stream)
        for other, greater in enumerate(stream)
        if key <= greater and at > other
    ]
    return max(pairs, default=0)


@given(keys)
def test_scrambling_factor_is_the_definition(stream: list[int]) -> None:
    assert scrambling_factor(stream) == by_definition(stream)


@given(keys)
def test_a_factor_is_at_least_the_multiplicity_minus_1_and_a_sort_brings_it_there(stream: list[int]) -> None:
    least = max(0, multiplicity(stream) - 1)
    assert scrambling_factor(stream) >= least == scrambling_factor(sorted(stream))


def test_equal_keys_count_as_disorder() -> None:
    assert (scrambling_factor([1, 1, 2, 2]), multiplicity([1, 1, 2, 2])) == (1, 2)


@given(keys)
def test_rows_stand_within_the_factor_of_their_virtual_index(stream: list[int]) -> None:
    """WU Th. 3.2.1."""
    least, greatest = virtual_index(stream)
    places, factor = np.arange(1, len(stream) + 1), scrambling_factor(stream)
    assert (places - least <= factor).all()
    assert (greatest - places <= factor).all()


FIRST, SECOND = [63, 63, 66, 62, 64, 68, 67], [63, 65, 68, 62]
FIRST_AT, SECOND_AT = [1, 4, 5, 6, 7, 8, 9], [2, 3, 10, 11]


@pytest.mark.parametrize(
    ("second", "lags"), [(SECOND, (0, 3)), (SECOND[:3], (-1, 0))], ids=["whole", "without the last row of S2"]
)
def test_lags_of_figure_3_1(second: list[int], lags: tuple[int, int]) -> None:
    """The last row of S2 comes after both moments, and still it decides: a lag is final k rows later."""
    came = [(sum(at <= t for at in FIRST_AT), sum(at <= t for at in SECOND_AT)) for t in (5, 10)]
    assert tuple(lag(FIRST, second, *moment) for moment in came) == lags


def test_without_a_next_of_kin_the_index_is_0() -> None:
    assert lag([5, 6], [1], 2, 1) == 2


@pytest.mark.parametrize(
    ("first", "second", "order", "published", "needed"),
    [([1, 2], [4, 1], "ijij", 1, 2), ([1, 2, 3, 4], [9, 1], "ijiiij", 2, 4)],
    ids=["in turns", "uneven"],
)
def test_published_buffers_are_too_small(
    first: list[int], second: list[int], order: str, published: int, needed: int
) -> None:
    """Eq. 3.6 and 3.7 are one row short, and take a mean for a bound."""
    least, _ = virtual_index(second)
    stands_for = int(least[-1])
    then = [place for place, stream in enumerate(order) if stream == "j"][stands_for - 1]
    came = order[: then + 1].count("i"), order[: then + 1].count("j")
    lagged = lag(first, second, *came)
    own = JoinInput(scrambling_factor(first), order.count("i"), multiplicity(first))
    other = JoinInput(scrambling_factor(second), order.count("j"), multiplicity(second))
    assert published_rows(own, other, lagged) == published
    assert len(first) - first.index(second[-1]) == needed
    assert corrected_rows(own.factor, lagged, order.count("i") - came[0]) == needed


merged = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=24)


def joined(arrivals: list[tuple[int, int]]) -> list[int]:
    """The keys that a join of three streams gives out, in the order of arrivals."""
    held: list[defaultdict[int, int]] = [defaultdict(int) for _ in range(3)]
    made = []
    for stream, key in arrivals:
        others = [held[other][key] for other in range(3) if other != stream]
        made += [key] * (others[0] * others[1])
        held[stream][key] += 1
    return made


@given(merged)
def test_what_a_join_gives_out_is_as_scrambled_as_its_inputs_allow(arrivals: list[tuple[int, int]]) -> None:
    """WU Th. 3.4.1, Eq. 3.10."""
    streams = [[key for stream, key in arrivals if stream == number] for number in range(3)]
    inputs = [JoinInput(scrambling_factor(each), len(each), multiplicity(each)) for each in streams]
    assert scrambling_factor(joined(arrivals)) <= joined_input(inputs).factor
    assert len(joined(arrivals)) <= joined_input(inputs).rate


rows = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25)


@given(rows)
def test_the_order_by_another_column_is_bounded(stream: list[tuple[int, int]]) -> None:
    """WU Th. 3.4.2, with the least dependent factor."""
    first, second = [a for a, _ in stream], [b for _, b in stream]
    bound = other_factor(scrambling_factor(first), dependent_scrambling(first, second))
    assert scrambling_factor(second) <= bound


@given(st.lists(st.integers(0, 5), max_size=12), rows)
def test_a_joined_stream_has_each_row_as_often_as_keys_repeat(one: list[int], other: list[tuple[int, int]]) -> None:
    pairs = [(a, b) for key, (a, b) in product(one, other) if key == a]
    found = dependent_scrambling([a for a, _ in pairs], [b for _, b in pairs])
    alone = dependent_scrambling([a for a, _ in other], [b for _, b in other])
    if pairs:
        assert found <= joined_dependent(alone, multiplicity(one))


def test_the_published_bound_of_a_joined_stream_fails() -> None:
    """§3.4.2.2 takes the dependent factor of S2 for the joined stream."""
    one, other = [1, 1, 2, 2, 3, 3], [(1, 3), (2, 2), (3, 1)]
    pairs = [(a, b) for key in one for a, b in other if key == a]
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    alone = dependent_scrambling([a for a, _ in other], [b for _, b in other])
    assert scrambling_factor(second) == 5
    assert other_factor(scrambling_factor(first), alone) == 4
    assert other_factor(scrambling_factor(first), joined_dependent(alone, multiplicity(one))) == 7


def test_sorting_shifts_lags() -> None:
    assert sorted_lag(JoinInput(10, 8), JoinInput(6, 2), lag=3) == 3 + 8 * 6 / 2 - 10


def test_resting_pays_from_three_times_the_time_of_the_disk() -> None:
    assert worth_resting(30, rate=10, seconds=1.0)
    assert not worth_resting(29, rate=10, seconds=1.0)
    assert not worth_resting(30, rate=0, seconds=1.0)
