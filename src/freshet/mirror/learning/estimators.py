"""Estimators of a change rate from polls that say only "changed" or "not" (CGM00a, CAR §6.2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import check_column
from freshet.model import UserError

Floats = NDArray[np.float64]


def naive(polls: int, changes: int, interval: float) -> float:
    """Changes over time: several changes between two polls count once, so it is too small.

    With one change per poll on average it finds 1 - 1/e = 0.63 of the rate, with three 0.32 (CGM00a §4.1).

    >>> naive(100, 63, interval=1.0)
    0.63
    >>> naive(0, 0, interval=1.0)
    Traceback (most recent call last):
    freshet.model.errors.UserError: a rate needs at least one poll, not 0
    """
    _check(polls, changes, interval)
    return changes / (polls * interval)


def bias_reduced(polls: int, changes: int, interval: float) -> float:
    """-ln((n - X + 0.5) / (n + 0.5)) per interval: nearly unbiased, finite if all polls found a change (CGM00a §4.1).

    >>> round(bias_reduced(100, 63, interval=1.0), 3)
    0.986
    """
    _check(polls, changes, interval)
    return float(-np.log((polls - changes + 0.5) / (polls + 0.5)) / interval)


def maximum_likelihood(intervals: Floats, changed: NDArray[np.bool_]) -> float:
    """For unequal intervals: the sum of t / (e^(rate t) - 1) where something changed is the time without changes.

    It is infinite if every poll found a change, and 0 if none did (CGM00a §4.2).

    >>> maximum_likelihood(np.array([1.0, 1.0, 1.0, 1.0, 1.0]), np.array([True, True, False, False, False]))
    0.5108...
    >>> round(maximum_likelihood(np.array([1.0, 4.0, 2.0]), np.array([False, True, False])), 3)
    0.212
    """
    if len(intervals) != len(changed):
        raise UserError(f"there are {len(intervals)} intervals, but {len(changed)} answers")
    check_column(intervals, "interval", zero=False)
    found, quiet = intervals[changed], float(intervals[~changed].sum())
    if not len(found):
        return 0.0
    if quiet == 0.0:
        return float("inf")
    low, high = 0.0, len(found) / quiet
    for _ in range(200):
        middle = 0.5 * (low + high)
        with np.errstate(over="ignore", divide="ignore"):
            more = float((found / np.expm1(middle * found)).sum()) > quiet
        low, high = (middle, high) if more else (low, middle)
    return float(0.5 * (low + high))


def by_last_modified(intervals: Floats, ages: Floats) -> float:
    """With the time of the last change: changes over the time since the last change or poll (CGM00a §5).

    A poll that found a change ``age`` seconds old saw one change in that time, and none after it.

    Args:
        intervals: Seconds between polls.
        ages: Seconds since the last change, where a poll found one; not a number where it found none.

    >>> by_last_modified(np.array([2.0, 2.0, 2.0]), np.array([0.5, np.nan, 1.5]))
    0.5
    """
    found = ~np.isnan(ages)
    exposed = float(np.where(found, ages, intervals).sum())
    changes = int(np.count_nonzero(found))
    if exposed == 0.0:
        return float("inf") if changes else 0.0
    return changes / exposed


def _check(polls: int, changes: int, interval: float) -> None:
    """Refuses counts that no polls can have given."""
    if polls < 1:
        raise UserError(f"a rate needs at least one poll, not {polls}")
    if not 0 <= changes <= polls:
        raise UserError(f"{polls} polls cannot have found {changes} changes")
    if not 0.0 < interval < float("inf"):
        raise UserError(f"the interval between polls is {interval}; it must be more than 0 seconds")
