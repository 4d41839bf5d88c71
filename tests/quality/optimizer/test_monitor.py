"""When queries are looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freshet.quality.optimizer import SystemMonitor


def test_a_look_that_comes_late_is_still_due() -> None:
    monitor = SystemMonitor()
    monitor.watch("q", now=0.0, every=3.0)
    assert monitor.due(2.999) == []
    assert monitor.due(3.0) == monitor.due(4.1) == ["q"]


def test_the_next_wake_up_moves_on() -> None:
    monitor = SystemMonitor()
    monitor.watch("fast", now=0.0, every=2.0)
    monitor.watch("slow", now=0.0, every=5.0)
    woken = []
    for _ in range(5):
        assert monitor.next_look is not None
        now = monitor.next_look
        woken.append((now, monitor.due(now)))
        for query in monitor.due(now):
            monitor.looked(query, now)
    assert woken == [(2.0, ["fast"]), (4.0, ["fast"]), (5.0, ["slow"]), (6.0, ["fast"]), (8.0, ["fast"])]


def test_a_late_look_does_not_shift_the_others_and_missed_ones_are_not_made_up_for() -> None:
    monitor = SystemMonitor()
    monitor.watch("q", now=0.0, every=3.0)
    monitor.looked("q", now=3.4)
    assert monitor.next_look == 6.0
    monitor.looked("q", now=13.0)
    assert monitor.next_look == 15.0


def test_intervals_change_and_queries_leave() -> None:
    monitor = SystemMonitor()
    monitor.watch("q", now=0.0, every=10.0)
    monitor.watch("q", now=1.0, every=2.0)
    assert monitor.next_look == 3.0
    monitor.watch("q", now=2.0, every=60.0)
    assert monitor.next_look == 3.0
    monitor.looked("q", now=3.0)
    assert monitor.next_look == 63.0
    monitor.drop("q")
    monitor.drop("q")
    assert monitor.due(1e9) == []
    assert SystemMonitor().next_look is None


@given(st.floats(1e-3, 100), st.lists(st.floats(0, 50), max_size=30))
def test_the_next_look_is_ahead_and_at_most_an_interval_away(every: float, delays: list[float]) -> None:
    monitor, now = SystemMonitor(), 0.0
    monitor.watch("q", now, every)
    for delay in delays:
        assert monitor.next_look is not None
        now = monitor.next_look + delay
        monitor.looked("q", now)
        assert monitor.next_look is not None
        assert now < monitor.next_look <= now + every * (1 + 1e-9)
