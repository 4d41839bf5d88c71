import pytest

from freshet.model import OperatorRun
from freshet.quality import OperatorStatistics, OverheadStatistics


def test_learns_cost_and_selectivity_by_rows():
    statistics = OperatorStatistics(alpha=0.5)
    for _ in range(5):
        statistics.add(OperatorRun(0, 1000, 500, 0.001))
    statistics.add(OperatorRun(0, 1000, 100, 0.003))
    assert statistics.cost == pytest.approx(2e-6)
    assert statistics.selectivity == pytest.approx(0.3)
    statistics.add(OperatorRun(0, 1, 1, 0.5))
    assert statistics.selectivity == pytest.approx(0.3, abs=0.01)
    assert (statistics.runs, statistics.rows_in, statistics.rows_out) == (7, 6001, 2601)
    assert statistics.seconds == pytest.approx(0.508)


@pytest.mark.parametrize("cold", [(0.9,), (0.9, 0.4), (1e-6, 0.9, 0.4, 0.9)])
def test_cold_runs_do_not_count_once_a_warm_one_was_seen(cold: tuple[float, ...]):
    statistics = OperatorStatistics()
    for cost in cold:
        statistics.add(OperatorRun(0, 10, 5, 10 * cost))
    for _ in range(20):
        statistics.add(OperatorRun(0, 10, 5, 10e-6))
        assert statistics.cost == statistics.expected_cost == pytest.approx(1e-6)
    assert statistics.seconds == pytest.approx(10 * sum(cold) + 200e-6)


def test_one_dear_run_is_measured_but_not_expected_again():
    statistics = OperatorStatistics(cost=1e-6)
    statistics.add(OperatorRun(0, 10, 5, 2.0))
    assert (statistics.cost, statistics.expected_cost) == (0.2, 1e-6)
    statistics.add(OperatorRun(0, 10, 5, 3.0))
    assert statistics.cost == statistics.expected_cost == 0.2


def test_one_cheap_run_is_believed():
    statistics = OperatorStatistics(cost=1e-6)
    statistics.add(OperatorRun(0, 1000, 5, 1e-4))
    assert statistics.cost == statistics.expected_cost == pytest.approx(1e-7)


def test_a_cost_that_changes_later_is_followed():
    statistics = OperatorStatistics()
    for cost in [1e-6] * 8 + [1e-4] * 20:
        statistics.add(OperatorRun(0, 10, 5, 10 * cost))
    assert statistics.expected_cost == pytest.approx(1e-4, rel=0.02)


def test_an_empty_train_teaches_nothing():
    statistics = OperatorStatistics(cost=3e-6, selectivity=0.7)
    statistics.add(OperatorRun(0, 0, 0, 0.02))
    assert (statistics.cost, statistics.selectivity, statistics.learned) == (3e-6, 0.7, False)
    assert (statistics.runs, statistics.seconds) == (1, 0.02)


def test_given_statistics_stay():
    statistics = OperatorStatistics.given(1e-3, 0.25)
    statistics.add(OperatorRun(0, 100, 100, 5.0))
    assert (statistics.cost, statistics.selectivity, statistics.learned) == (1e-3, 0.25, True)
    assert statistics.rows_in == 100


def test_overhead_counts_calls_alike():
    overhead = OverheadStatistics()
    assert overhead.seconds == 0.0
    for seconds in (0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2):
        overhead.add(seconds)
    assert overhead.seconds == pytest.approx(0.136)
    assert overhead.calls == 7
    assert overhead.total == pytest.approx(0.9)


@pytest.mark.parametrize("cold", [(2.0,), (3.0, 0.9), (0.04, 5.0, 0.5, 2.0)])
def test_cold_calls_do_not_count_once_a_warm_one_was_seen(cold: tuple[float, ...]):
    overhead = OverheadStatistics()
    for seconds in cold:
        overhead.add(seconds)
    for _ in range(20):
        overhead.add(0.04)
        assert overhead.seconds == pytest.approx(0.04)


def test_an_overhead_that_changes_later_is_followed():
    overhead = OverheadStatistics()
    for seconds in [0.03] * 8 + [0.3] * 20:
        overhead.add(seconds)
    assert overhead.seconds == pytest.approx(0.3, rel=0.02)
