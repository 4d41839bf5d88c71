import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality import QueueLength, Waiting

queues = st.builds(QueueLength, st.integers(0, 20), st.integers(0, 1000), st.floats(0, 100), st.floats(0, 1))


@given(st.lists(queues, max_size=6))
def test_sums_up_and_takes_the_oldest(lengths):
    waiting = Waiting.in_queues(lengths)
    filled = [queue for queue in lengths if queue.rows]
    assert waiting.rows == sum(queue.rows for queue in filled)
    assert waiting.bytes == sum(queue.bytes for queue in filled)
    assert waiting.since == min((queue.since for queue in filled), default=None)
    none = math.prod((1 - queue.selectivity) ** queue.rows for queue in filled)
    if filled:
        assert waiting.probability == pytest.approx(1 - none, abs=1e-9)


def test_empty_queues_wait_for_nothing():
    assert Waiting.in_queues([QueueLength(0, 0, math.inf, 0.5)]) == Waiting()
