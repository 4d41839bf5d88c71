import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality import Histogram

durations = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=200)
shares = st.floats(0.001, 1.0)


def exact(values, share):
    """The least value that at least this share of all do not exceed."""
    ordered = sorted(values)
    ranks = (rank for rank in range(1, len(ordered) + 1) if rank >= share * len(ordered))
    return ordered[next(ranks) - 1]


@given(durations, shares, st.sampled_from([0.001, 0.01, 0.05]))
def test_quantiles_keep_the_relative_error(values, share, error):
    histogram = Histogram(error)
    histogram.add(np.array(values))
    assert histogram.quantiles([share])[0] == pytest.approx(exact(values, share), rel=error * (1 + 1e-9))


def test_quantiles_agree_with_numpy_on_many_values():
    values = np.random.default_rng(7).lognormal(-2, 2, 100_000)
    histogram = Histogram()
    histogram.add(values)
    wanted = np.quantile(values, [0.5, 0.95, 0.99], method="inverted_cdf")
    assert histogram.quantiles([0.5, 0.95, 0.99]) == pytest.approx(wanted.tolist(), rel=0.01)


@given(durations, durations)
def test_merging_equals_seeing_both(left, right):
    both, first, second = Histogram(), Histogram(), Histogram()
    both.add(np.array(left + right))
    first.add(np.array(left))
    second.add(np.array(right))
    first.merge(second)
    assert (first.counts == both.counts).all()
    assert (first.minimum, first.maximum) == (both.minimum, both.maximum)


def test_weights_count_as_repetitions():
    weighted, repeated = Histogram(), Histogram()
    weighted.add(np.array([0.1, 2.0]), np.array([3.0, 1.0]))
    repeated.add(np.array([0.1, 0.1, 0.1, 2.0]))
    assert (weighted.counts == repeated.counts).all()


def test_extremes_stay_in_range():
    histogram = Histogram()
    histogram.add(np.array([0.0, 1e-9, 1e12]))
    assert histogram.quantiles([0.1, 0.5])[1] <= 1e-6
    assert math.isfinite(histogram.quantiles([1.0])[0])
    assert histogram.maximum == 1e12


def test_empty_has_no_quantiles():
    histogram = Histogram()
    histogram.add(np.array([]))
    with pytest.raises(ValueError, match="empty"):
        histogram.quantiles([0.5])


def test_different_errors_do_not_merge():
    with pytest.raises(ValueError, match="relative errors"):
        Histogram(0.01).merge(Histogram(0.02))
