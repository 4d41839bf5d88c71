"""The calendar queue against a plain sort."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.policies.aurora.calendar_queue import CalendarQueue

PRIORITIES = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 0.5]),  # ties
    st.floats(allow_nan=False),
    st.floats(1e-9, 1e-6),
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 40), PRIORITIES),
        st.tuples(st.just("remove"), st.integers(0, 40), st.just(0.0)),
        st.tuples(st.just("serve"), st.just(0), st.just(0.0)),
    ),
    max_size=300,
)


class Sorted:
    """What a calendar queue must do, done by sorting."""

    def __init__(self) -> None:
        self.items: dict[int, tuple[float, int]] = {}
        self.order = 0

    def put(self, item: int, priority: float) -> None:
        if item not in self.items or self.items[item][0] != priority:
            self.order += 1
            self.items[item] = priority, self.order

    def ranking(self) -> list[tuple[int, float]]:
        ranked = sorted(self.items, key=lambda item: (-self.items[item][0], self.items[item][1]))
        return [(item, self.items[item][0]) for item in ranked]


@settings(max_examples=150, deadline=None)
@given(OPERATIONS)
def test_it_orders_like_a_sort(operations: list[tuple[str, int, float]]) -> None:
    queue, plain = CalendarQueue(), Sorted()
    for name, item, priority in operations:
        if name == "put":
            queue.put(item, priority)
            plain.put(item, priority)
        elif name == "remove":
            assert queue.remove(item) == (plain.items.pop(item, None) is not None)
        else:
            best = queue.best()
            assert best == next(iter(plain.ranking()), None)
            if best is not None:
                queue.remove(best[0])
                del plain.items[best[0]]
        assert len(queue) == len(plain.items)
    assert list(queue) == plain.ranking()


def test_it_stays_in_order_while_it_grows_and_shrinks_and_its_range_moves() -> None:
    rng = random.Random(5)
    queue, plain = CalendarQueue(), Sorted()
    for scale in (1.0, 1e-6, 1e9):
        for item in range(3000):
            priority = scale * rng.lognormvariate(0, 3)
            queue.put(item, priority)
            plain.put(item, priority)
        for expected in plain.ranking()[:2900]:
            assert queue.best() == expected
            queue.remove(expected[0])
            del plain.items[expected[0]]


def test_a_moved_range_does_not_leave_everything_in_one_bucket() -> None:
    rng = random.Random(6)
    queue = CalendarQueue()
    for shift in (0.0, 1e6):
        for item in range(5000):
            queue.put(item, shift + rng.random())
    for item in range(5000):
        queue.put(item, 1e6 + rng.random())
    assert max(len(bucket) for bucket in queue._buckets) < 600  # a fifth lies outside the sampled range


def test_equal_priorities_are_served_in_the_order_of_insertion() -> None:
    queue = CalendarQueue()
    for item in (5, 3, 9, 1):
        queue.put(item, 1.0)
    queue.put(5, 1.0)  # unchanged: keeps its place
    queue.put(3, 2.0)
    queue.put(3, 1.0)  # came back: goes to the end
    assert [item for item, _ in queue] == [5, 9, 1, 3]


def test_memory_is_bounded_by_what_is_in_it() -> None:
    queue = CalendarQueue()
    for turn in range(20_000):
        queue.put(turn % 10, 1.0 / (1 + turn))  # old entries are all above the new ones
    assert sum(len(bucket) for bucket in queue._buckets) < 200


def test_infinities_are_priorities_too() -> None:
    queue = CalendarQueue()
    for item, priority in enumerate((-math.inf, 0.0, math.inf)):
        queue.put(item, priority)
    assert [item for item, _ in queue] == [2, 1, 0]
