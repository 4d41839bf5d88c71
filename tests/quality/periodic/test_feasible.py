"""Demand by deadline: which level fits."""

from __future__ import annotations

import pytest

from freshet.quality.periodic import PeriodicLoad, fit


def linear(name: str, seconds: float, period: float, deadline: float, overhead: float = 0.0) -> PeriodicLoad:
    return PeriodicLoad(name, lambda level: overhead + seconds * level, period, deadline)


def test_a_load_below_1_may_not_fit_its_deadlines() -> None:
    found = fit([linear("a", 0.4, 1.0, 0.5), linear("b", 0.3, 1.0, 0.5)])
    assert found.load == pytest.approx(0.7)
    assert found.level == pytest.approx(0.714, abs=1e-3)
    assert (found.tightest, found.demand) == pytest.approx((0.5, 0.7))


def test_overhead_and_blocking_take_their_part() -> None:
    queries = [linear("a", 0.4, 1.0, 0.5, overhead=0.02), linear("b", 0.3, 1.0, 0.5, overhead=0.02)]
    assert fit(queries, blocking=0.06).level == pytest.approx(0.4 / 0.7, abs=1e-3)


def test_deadlines_at_periods_need_the_long_run_only() -> None:
    assert fit([linear("a", 0.5, 1.0, 1.0), linear("b", 1.0, 2.0, 2.0)]).level == 1.0
    assert fit([linear("a", 0.5, 1.0, 1.0), linear("b", 1.5, 2.0, 2.0)]).level == pytest.approx(0.8, abs=1e-3)


def test_table_2_at_utilization_1_asks_for_two_seconds_of_work_in_one() -> None:
    """Periods of 2 s, deadlines of 1 s, common releases."""
    found = fit([linear(str(number), 2.0 / 16, 2.0, 1.0) for number in range(16)])
    assert found.load == pytest.approx(1.0)
    assert found.demand == pytest.approx(2.0)
    assert found.level == pytest.approx(0.5, abs=1e-3)


def test_the_reserve_of_continuous_queries_is_kept_free() -> None:
    assert fit([linear("a", 0.5, 1.0, 0.5)], capacity=0.9).level == pytest.approx(0.9, abs=1e-3)


def test_nothing_fits_where_overhead_does_not() -> None:
    assert fit([linear("a", 0.1, 1.0, 0.5, overhead=0.6)]).level == 0.0
    assert fit([]).level == 1.0
