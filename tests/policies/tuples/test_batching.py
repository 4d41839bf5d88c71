"""Batches: how long they are, and that no tuple is looked at twice."""

from __future__ import annotations

from freshet.policies.tuples.batching import IntelligentBatches, IntervalBatches
from freshet.simulation.view import RecordView


def queue(expiries: list[float], now: float) -> RecordView:
    view = RecordView(now=now)
    (operator,) = view.add("q", [(1.0, 1.0)])
    view.ready[operator] = None
    fill(view, expiries)
    return view


def fill(view: RecordView, expiries: list[float], came: int | None = None) -> None:
    operator = view.operators[0]
    operator.expiries, operator.pending = expiries, len(expiries)
    operator.came = len(expiries) if came is None else came


def test_a_batch_is_short_where_tuples_are_urgent() -> None:
    every = [10.0 + place for place in range(10)]
    assert IntelligentBatches().rows(queue(every, now=9.0), 0) == 1
    assert IntelligentBatches().rows(queue(every, now=5.0), 0) == 5
    assert IntelligentBatches(alpha=0.4).rows(queue(every, now=5.0), 0) == 3


def test_a_batch_ends_where_a_burst_ends() -> None:
    view, batches = queue([100.0], now=0.0), IntelligentBatches()
    assert batches.rows(view, 0) == 1
    # 100 tuples in 10 s: a gap of more than 4 * 0.1 s ends a batch.
    view.now = 10.0
    fill(view, [100.0 + 0.1 * place for place in range(60)] + [106.5, 106.6], came=100)
    assert batches.rows(view, 0) == 60


def test_no_tuple_is_looked_at_twice() -> None:
    view, batches = queue([10.0 + 0.01 * place for place in range(50)], now=0.0), IntelligentBatches()
    assert batches.rows(view, 0) == 50
    looked = batches.operations
    assert batches.rows(view, 0) == 50
    assert batches.operations == looked
    # Ten of them ran, and five more came.
    fill(view, [10.1 + 0.01 * place for place in range(45)], came=55)
    assert batches.rows(view, 0) == 45
    assert batches.operations == looked + 5


def test_an_interval_is_searched_by_halves() -> None:
    view, batches = queue([10.0 + 0.01 * place for place in range(1000)], now=0.0), IntervalBatches(2.0)
    assert batches.rows(view, 0) == 201
    assert batches.operations < 12
