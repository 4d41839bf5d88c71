import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freshet.quality.intervals import IntervalUnion, merged

# Quarters are exact in floating point, so that lengths can be compared for equality.
# A narrow range makes intervals meet, a wide one leaves gaps.
quarters = st.one_of(st.integers(0, 400), st.integers(0, 30)).map(lambda number: number / 4)
short = st.tuples(st.integers(0, 30), st.integers(0, 6)).map(lambda pair: (pair[0] / 4, sum(pair) / 4))
intervals = st.lists(st.tuples(quarters, quarters), max_size=60) | st.lists(short, max_size=20)


def covered(pairs, first=0.0, last=100.0):
    """Brute force: counts the quarters of a second that some interval covers."""
    slots = np.zeros(400, dtype=bool)
    for start, end in pairs:
        slots[int(start * 4) : int(end * 4)] = True
    return float(slots[int(first * 4) : int(last * 4)].sum()) / 4


@given(intervals)
@example([(5.0, 5.25), (4.5, 6.0)])
def test_length_is_that_of_the_union_in_any_order(pairs):
    union = IntervalUnion()
    for start, end in pairs:
        union.add(start, end)
    assert union.length == covered(pairs)
    assert union.exact


@given(st.lists(intervals, max_size=5))
def test_many_at_once_equal_one_by_one(groups):
    union = IntervalUnion()
    for pairs in groups:
        both = np.array(pairs).reshape(-1, 2)
        union.add_many(both[:, 0], both[:, 1])
    assert union.length == covered([pair for pairs in groups for pair in pairs])


@given(intervals, quarters, quarters)
def test_part_within_a_range(pairs, first, last):
    union = IntervalUnion()
    for start, end in pairs:
        union.add(start, end)
    assert union.within(first, last) == covered(pairs, first, last)


@given(intervals, st.integers(2, 6))
def test_a_small_limit_is_exact_while_nothing_reaches_behind_the_floor(pairs, limit):
    union = IntervalUnion(limit)
    taken = []
    for start, end in pairs:
        if start >= union.floor:
            union.add(start, end)
            taken.append((start, end))
        assert len(union) <= limit
    assert union.exact
    assert union.length == covered(taken)


@given(intervals, st.integers(2, 6), quarters, quarters)
def test_reaching_behind_the_floor_stays_within_what_is_possible(pairs, limit, first, last):
    union = IntervalUnion(limit)
    seen = 0.0
    for start, end in pairs:
        union.add(start, end)
        assert union.length >= seen - 1e-9
        seen = union.length
    longest = max((end - start for start, end in pairs), default=0.0)
    assert max(0.0, longest) - 1e-9 <= union.length <= 100.0 + 1e-9
    assert -1e-9 <= union.within(first, last) <= max(0.0, last - first) + 1e-9
    assert union.within(-math.inf, math.inf) == pytest.approx(union.length)


def test_an_interval_over_all_the_past_makes_it_exactly_covered_again():
    union = IntervalUnion(limit=4)
    for start in range(100):
        union.add(start, start + 0.25)
    assert union.length == 25.0
    union.add(0.0, 99.25)
    assert union.length == pytest.approx(99.25)
    assert not union.exact


def test_an_old_interval_fills_gaps_in_proportion():
    union = IntervalUnion(limit=16)
    for start in range(1000):
        union.add(start, start + 0.5)
    before = union.length
    union.add(100.0, 300.0)
    # Half of the 200 s was covered; which half is no longer known exactly.
    assert union.length - before == pytest.approx(100.0, rel=0.02)
    assert union.within(100.0, 300.0) == pytest.approx(200.0)
    assert union.within(400.0, 600.0) == pytest.approx(100.0, rel=0.02)
    assert union.within(0.0, 1000.0) == pytest.approx(union.length)


def test_memory_is_bounded_for_bulk_as_well():
    union = IntervalUnion()
    starts = np.arange(10_000.0)
    union.add_many(starts, starts + 0.5)
    assert union.length == 5_000.0
    assert len(union) <= union.limit


def test_merged_sorts_and_joins_touching_intervals():
    starts, ends = merged(np.array([5.0, 0.0, 1.0, 5.5]), np.array([6.0, 1.0, 2.0, 5.75]))
    assert starts.tolist() == [0.0, 5.0]
    assert ends.tolist() == [2.0, 6.0]


def test_not_a_number_and_reversed_intervals_add_nothing():
    union = IntervalUnion()
    union.add(math.nan, 1.0)
    union.add(2.0, 1.0)
    union.add(1.0, 1.0)
    assert union.length == 0.0


def test_many_reversed_intervals_add_nothing():
    union = IntervalUnion()
    union.add_many(np.arange(1.0, 101.0), np.arange(100.0))
    assert union.length == 0.0
