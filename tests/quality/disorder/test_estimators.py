"""Estimators in constant memory against the definitions over the whole log, however the rows are divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model.key_order import KeyOrder
from freshet.quality.disorder import (
    DependentOrder,
    Disorder,
    IntegerSketch,
    KeyCounts,
    KeyHeights,
    dependent_scrambling,
    displacements,
    distances,
    multiplicity,
    scrambling_factor,
)
from freshet.quality.disorder.heights import Climb
from freshet.quality.disorder.scrambling import KeyNumbers

seeds = st.integers(0, 2**32 - 1)


def scrambled(seed: int, rows: int, jitter: int) -> KeyNumbers:
    random = np.random.default_rng(seed)
    keys: KeyNumbers = np.arange(rows) * 2 - random.integers(0, jitter + 1, rows) + random.integers(-50, 50)
    if rows:
        # Now and then one that is far too late.
        keys[random.random(rows) < 0.002] -= 5 * jitter + 100
    return keys


def cuts(seed: int, keys: KeyNumbers) -> list[KeyNumbers]:
    random = np.random.default_rng(seed)
    places = np.sort(random.integers(0, len(keys) + 1, random.integers(0, 9)))
    return np.split(keys, places)


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=60), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_a_quantile_is_a_128th_part_above_at_most(numbers: list[int], share: float) -> None:
    found = IntegerSketch().plus(np.array(numbers)).quantile(share)
    needed = max(1, int(np.ceil(share * len(numbers))))
    exact = sorted(numbers)[needed - 1]
    assert exact <= found <= exact + exact / 128


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(0, 60))
def test_a_sketch_knows_no_order(numbers: list[int], cut: int) -> None:
    whole = IntegerSketch().plus(np.array(numbers, np.int64))
    parts = IntegerSketch().plus(np.array(numbers[cut:], np.int64)).plus(np.array(numbers[:cut], np.int64))
    assert whole == parts


@given(seeds, st.integers(0, 3000), st.integers(0, 900), seeds)
def test_heights_know_no_batches_and_lie_a_32nd_part_back_at_most(seed: int, rows: int, jitter: int, cut: int) -> None:
    keys = scrambled(seed, rows, jitter)
    whole, parts = KeyHeights().after(keys), KeyHeights()
    for part in cuts(cut, keys):
        parts = parts.after(part)
    assert whole.rows == parts.rows == rows
    assert whole.kept.tolist() == parts.kept.tolist()
    highest = np.maximum.accumulate(keys) if rows else keys
    for back in (0, 1, 63, 64, 500, rows - 1):
        if 0 <= back < rows and (found := whole.at(rows - back)) is not None:
            assert highest[max(0, int(rows - back * 33 / 32) - 2)] <= found <= highest[rows - back - 1]


@given(seeds, st.integers(1, 2500), st.integers(0, 900), seeds)
def test_displacements_are_a_32nd_part_above_at_most(seed: int, rows: int, jitter: int, cut: int) -> None:
    keys, heights, found = scrambled(seed, rows, jitter), KeyHeights(), []
    for part in cuts(cut, keys):
        climb = Climb(heights, part)
        found.append(climb.displacements())
        heights = climb.heights
    exact, estimated = displacements(keys), np.concatenate(found)
    assert (exact <= estimated).all()
    assert (estimated <= exact + np.maximum(exact // 31, 0) + 1).all()
    assert (estimated[exact < 60] == exact[exact < 60]).all()


ORDERS = [KeyOrder("k", rows=0), KeyOrder("k", rows=40), KeyOrder("k", rows=700), KeyOrder("k", distance=300)]
ORDERS += [KeyOrder("k", in_order=0.9), KeyOrder("k", in_order=0.99)]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@given(seed=seeds, rows=st.integers(0, 4500), jitter=st.integers(0, 900), cut=seeds)
@settings(max_examples=25)
def test_batches_and_restarts_change_no_judgement(order: KeyOrder, seed: int, rows: int, jitter: int, cut: int) -> None:
    keys = scrambled(seed, rows, jitter)
    past, known, _ = Disorder().judge(keys, order)
    done, parts, again = 0, [np.empty(0, np.int64)], Disorder()
    for part in cuts(cut, keys):
        late, after, _ = again.judge(part, order)
        assert again.mark is None or (after.mark is not None and again.mark <= after.mark), "a mark has fallen"
        parts.append(late + done)
        again, done = Disorder.unpacked(after.packed()), done + len(part)
    assert np.concatenate(parts).tolist() == past.tolist()
    assert again.packed() == known.packed()


@given(seeds, st.integers(1, 2500), st.integers(0, 900))
def test_marks_by_rows_are_the_definition(seed: int, rows: int, jitter: int) -> None:
    """After p rows a later key is above the greatest of the first p - k, or the row is past the mark."""
    keys, order = scrambled(seed, rows, jitter), KeyOrder("k", rows=50)
    past = set(Disorder().judge(keys, order).past.tolist())
    exact = displacements(keys)
    assert past == set(np.flatnonzero(exact > 50).tolist())


@given(seeds, st.integers(1, 2500), st.integers(0, 900))
def test_marks_by_distance_are_the_definition(seed: int, rows: int, jitter: int) -> None:
    keys, order = scrambled(seed, rows, jitter), KeyOrder("k", distance=400)
    past = Disorder().judge(keys, order).past
    assert past.tolist() == np.flatnonzero(distances(keys) > 400).tolist()


@pytest.mark.parametrize("in_order", [0.9, 0.99, 0.999])
def test_the_promised_share_lies_above_the_mark(in_order: float) -> None:
    keys = scrambled(7, 60_000, 400)
    past, known, _ = Disorder().judge(keys, KeyOrder("k", in_order=in_order))
    assert 0 < len(past) <= (1 - in_order) * len(keys) * 1.05
    assert past[0] >= 1000, "the first mark waits for 1,000 rows"
    assert not known.grows(in_order)


def test_a_straggler_does_not_ruin_the_mark() -> None:
    keys = scrambled(3, 20_000, 100)
    keys[10_000] = -(10**9)
    known = Disorder().judge(keys, KeyOrder("k")).disorder
    assert known.mark is not None
    assert known.mark > keys.max() - 2_000


@pytest.mark.parametrize("keys", [np.arange(30_000)[::-1], np.random.default_rng(1).integers(0, 10**6, 30_000)])
def test_a_stream_without_an_order_is_seen(keys: KeyNumbers) -> None:
    assert Disorder().judge(keys, KeyOrder("k")).disorder.grows(0.99)


def in_parts(keys: KeyNumbers, order: KeyOrder, cut: int) -> list[tuple[slice, KeyNumbers, int | None]]:
    """Batches, each with the places of its rows that are not past the mark, and the mark after it."""
    known, done, found = Disorder(), 0, []
    for part in cuts(cut, keys):
        late, known, _ = known.judge(part, order)
        found.append((slice(done, done + len(part)), np.delete(np.arange(len(part)), late), known.mark))
        done += len(part)
    return found


repeated = st.sampled_from([1, 3, 40])


@given(seeds, st.integers(0, 2500), st.integers(0, 400), repeated, seeds)
def test_multiplicity_as_rows_come(seed: int, rows: int, jitter: int, repeat: int, cut: int) -> None:
    """Exact at any time, and with no more keys than the scrambling factor."""
    keys = scrambled(seed, rows, jitter) // (2 * repeat)
    factor, counts, most = scrambling_factor(keys), KeyCounts(), 0
    for part, kept, mark in in_parts(keys, KeyOrder("k", rows=factor), cut):
        counts = counts.after(keys[part][kept], mark)
        assert counts.multiplicity == multiplicity(keys[: part.stop])
        most = max(most, len(counts.keys))
    assert most <= factor + factor // 31 + 1, "what is kept is bounded by the factor"


@given(seeds, st.integers(0, 2500), st.integers(0, 400), st.sampled_from([0, 90, 900, 10**9]), repeated, seeds)
def test_the_dependent_factor_as_rows_come(
    seed: int, rows: int, jitter: int, apart: int, repeat: int, cut: int
) -> None:
    """That of the rows that the mark has passed, never too low, and exact as long as it is small."""
    first = scrambled(seed, rows, jitter) // (2 * repeat)
    second = first + np.random.default_rng(cut).integers(0, apart + 1, rows)
    factor, order = scrambling_factor(first), DependentOrder()
    for part, kept, mark in in_parts(first, KeyOrder("k", rows=factor), cut):
        order = order.after(first[part][kept], second[part][kept], mark)
        assert len(order.first) <= factor + factor // 31 + 1, "what waits is bounded by the factor"
    whole = order.after(first[:0], second[:0], mark=2**62)
    exact = dependent_scrambling(first, second)
    assert exact <= whole.factor() <= exact * 1.042 + 1
    if exact < 60:
        assert whole.factor() == exact
    assert order.rows + len(order.first) == whole.rows == rows


@given(seeds, st.integers(1, 1500), st.integers(0, 400), seeds)
def test_batches_change_nothing_of_multiplicity_and_dependence(seed: int, rows: int, jitter: int, cut: int) -> None:
    """Also if rows come past the mark, which nobody counts."""
    first, order = scrambled(seed, rows, jitter) // 5, KeyOrder("k", rows=20)
    second = first[::-1].copy()
    found = []
    for cuts_of in (cut, cut + 1):
        counts, dependence = KeyCounts(), DependentOrder()
        for part, kept, mark in in_parts(first, order, cuts_of % 2**32):
            counts = counts.after(first[part][kept], mark)
            dependence = dependence.after(first[part][kept], second[part][kept], mark)
        found.append((counts, dependence))
    (one, some), (other, more) = found
    assert (one.multiplicity, one.keys.tolist()) == (other.multiplicity, other.keys.tolist())
    assert some.rows_back == more.rows_back
    assert some.first.tolist() == more.first.tolist()
