"""The search for mu, the one unknown that all elements share."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.orders import PollOrder

Floats = NDArray[np.float64]

_CLOSE: Final = 3e-7
"""Relative error of the spending at which the search ends; scaling all frequencies removes the rest."""
_NARROW: Final = 1e-7
"""Width of the bounds at which the search ends: the relative error of mu is at most twice that."""
_STEP: Final = 20.0
"""Longest step of the logarithm of r."""
_LARGE: Final = 1e150
_SMOOTH: Final = 1e-5
"""Least length of a step whose secant says more about the slope than about the jumps of single elements."""
_ELASTIC: Final = 30.0
_SAMPLE: Final = 20_000
_CHUNK: Final = 1 << 14
"""Elements that are evaluated at once: their arrays stay in the cache of the processor."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The elements as the search sees them.

    Args:
        price: p / (lambda s) of the element that deserves polls most; 0 if none does.
        demerit: That price over the price of each element: 1 for the most deserving, more for others.
        cost: lambda s of each element: what one poll per change costs.
        rates: Change rates.
        low: Least frequencies, or None.
    """

    price: float
    demerit: Floats
    cost: Floats
    rates: Floats
    low: Floats | None

    @classmethod
    def of(cls, elements: Elements, low: Floats | None) -> Candidates:
        """All elements; the demerit of those that never change or are worth nothing is infinite."""
        cost = elements.rates * elements.sizes
        demerit = inverse_prices(cost, elements.worth)
        cheapest = float(demerit.min(initial=np.inf))
        if np.isfinite(cheapest):
            demerit /= cheapest
        return cls(1.0 / cheapest, demerit, cost, elements.rates, low)

    def part(self, rows: slice) -> Candidates:
        """The candidates of these rows, without a copy."""
        low = None if self.low is None else self.low[rows]
        return Candidates(self.price, self.demerit[rows], self.cost[rows], self.rates[rows], low)


def inverse_prices(cost: Floats, worth: Floats) -> Floats:
    """The values of lambda s / p; infinite for elements that no poll is worth.

    >>> inverse_prices(np.array([2.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0]))
    array([ 2., inf, inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = cost / worth
    inverse[cost == 0.0] = np.inf
    return inverse


@dataclass(frozen=True, slots=True)
class FoundRates:
    """The frequencies of the candidates, their mu, and the slope of the spending there."""

    frequencies: Floats
    mu: float
    slope: float
    evaluations: int


class SearchStart(NamedTuple):
    """Where a search begins.

    Args:
        mu: The mu of a plan for nearly the same elements.
        slope: The slope of the spending at that mu, if it is known.
        spent: About what is spent at that mu, if it is known.
    """

    mu: float
    slope: float | None = None
    spent: float | None = None


def search(some: Candidates, budget: float, order: PollOrder, start: SearchStart | None = None) -> FoundRates:
    """Finds the r of the most deserving element at which the budget is spent, by secants between bounds.

    The logarithm of what is spent is nearly linear in the logarithm of that r, for small and for large budgets alike;
    mu itself approaches its bound exponentially, and a float cannot tell small budgets apart by it. The first step is
    Newton's. Later ones use secants, because single elements on the verge of being polled make derivatives jump.

    Args:
        some: The candidates.
        budget: What they may cost beyond their floors.
        order: How the polls of an element lie in time.
        start: Where to begin, or None.
    """
    frequencies = np.empty(len(some.cost))
    first = _first(some, budget, order, start)
    there, slope = log(first.r), first.slope
    spent, smooth = _evaluate(some, order, first.r, frequencies), slope
    bounds, evaluations = _Bounds(), 1
    while not bounds.narrow(there, error := _log_ratio(spent, budget)):
        before, there = there, bounds.next(there, error, slope)
        spent = _evaluate(some, order, exp(there), frequencies)
        slope = (_log_ratio(spent, budget) - error) / (there - before)
        smooth = slope if abs(there - before) >= _SMOOTH else smooth
        evaluations += 1
    if abs(error) > _CLOSE:
        frequencies, spent = _between(some, order, budget, bounds)
        evaluations += 2
    gain = float(order.gain(np.array([exp(there)]))[0])
    return FoundRates(_scaled(some, frequencies, budget / spent), some.price * gain, smooth, evaluations)


def _between(some: Candidates, order: PollOrder, budget: float, bounds: _Bounds) -> tuple[Floats, float]:
    """Splits the budget where the spending jumps.

    An element on the verge of being polled gets nothing at one mu and a fortieth of its change rate at the next float.
    The two have the same mu to seven digits, and so has every mixture of them.
    """
    more, less = np.empty(len(some.cost)), np.empty(len(some.cost))
    high = _evaluate(some, order, exp(bounds.low), more)
    low = _evaluate(some, order, exp(bounds.high), less)
    share = (budget - low) / (high - low)
    return share * more + (1.0 - share) * less, share * high + (1.0 - share) * low


class _First(NamedTuple):
    """The r of the most deserving element to begin with, and the slope there."""

    r: float
    slope: float


def _first(some: Candidates, budget: float, order: PollOrder, start: SearchStart | None) -> _First:
    """Begins at the mu of an earlier plan, or as if budgets were large.

    For large budgets g(r) is proportional to r^2, so that r grows with the root of the demerit.
    """
    if start is not None and 0.0 < start.mu < some.price:
        gain = start.mu / some.price
        r = float(order.inverse(np.array([gain]), np.array([1.0 - gain]))[0])
        if 0.0 < r < np.inf:
            slope = _slope(some, order, r) if start.slope is None else start.slope
            if slope < 0.0 and start.spent is not None and start.spent > 0.0:
                r *= exp(_step(log(start.spent / budget), slope))  # an estimate: it bounds nothing
            return _First(r, slope)
    r = min(float((some.cost / np.sqrt(some.demerit)).sum()) / budget, _LARGE)
    return _First(r, _slope(some, order, r))


def _step(error: float, slope: float) -> float:
    return min(max(-error / slope, -_STEP), _STEP)


def _log_ratio(spent: float, budget: float) -> float:
    return log(spent / budget) if spent > 0.0 else -np.inf


class _Bounds:
    """Where the solution lies: the logarithms of r with the least error on each side so far."""

    def __init__(self) -> None:
        self.low, self.high = -np.inf, np.inf

    def narrow(self, there: float, error: float) -> bool:
        """Takes in an error; whether it is small enough, or no float is left between the bounds."""
        if error > 0.0:
            self.low = there
        else:
            self.high = there
        return abs(error) <= _CLOSE or self.high - self.low <= _NARROW

    def next(self, there: float, error: float, slope: float) -> float:
        """The next place to look at: on the secant, or in the middle of the bounds if that lies outside."""
        if slope < 0.0 and np.isfinite(error / slope):
            ahead = there + _step(error, slope)
            if self.low < ahead < self.high:
                return ahead
        if np.isfinite(self.low) and np.isfinite(self.high):
            return 0.5 * (self.low + self.high)
        return there + (_STEP if error > 0.0 else -_STEP)


def _evaluate(some: Candidates, order: PollOrder, r: float, out: Floats) -> float:
    """Fills in the frequencies; what is spent beyond the floors."""
    top = _Top.of(order, r)
    return sum(
        _evaluate_part(some.part(slice(begin, begin + _CHUNK)), order, top, out[begin : begin + _CHUNK])
        for begin in range(0, len(out), _CHUNK)
    )


class _Top(NamedTuple):
    """The most deserving element: its r, and the gain, the lack and the slope of the gain there."""

    r: float
    gain: float
    lack: float
    slope: float

    @classmethod
    def of(cls, order: PollOrder, r: float) -> _Top:
        there = np.array([r])
        gain, lack, slope = (float(each(there)[0]) for each in (order.gain, order.lack, order.slope))
        return cls(r, gain, lack, slope)


def _solve(demerit: Floats, order: PollOrder, top: _Top) -> tuple[NDArray[np.intp], Floats]:
    """The elements that are polled, and their r."""
    # Of the two forms of 1 - demerit * gain, the first is exact near demerit 1, the second elsewhere.
    with np.errstate(invalid="ignore"):
        lacks = np.where(demerit < 2.0, (1.0 - demerit) + demerit * top.lack, 1.0 - demerit * top.gain)
    polled = np.flatnonzero((lacks > 0.0) | (demerit == 1.0))
    if len(polled) < len(demerit):
        demerit, lacks = demerit[polled], lacks[polled]
    with np.errstate(all="ignore"):  # the lack of the most deserving may underflow; their r is known
        r = order.inverse(np.minimum(demerit * top.gain, 1.0), lacks)
    r[demerit == 1.0] = top.r
    return polled, r


def _evaluate_part(some: Candidates, order: PollOrder, top: _Top, out: Floats) -> float:
    polled, r = _solve(some.demerit, order, top)
    everybody = len(polled) == len(out)
    frequencies = (some.rates if everybody else some.rates[polled]) / r
    cost = some.cost if everybody else some.cost[polled]
    if some.low is None:
        _fill(out, polled, frequencies, 0.0)
        return float((cost / r).sum())
    low = some.low[polled]
    _fill(out, polled, np.maximum(frequencies, low), some.low)
    return float((cost / r * np.maximum(1.0 - low / frequencies, 0.0)).sum())


def _slope(some: Candidates, order: PollOrder, r: float) -> float:
    """The slope of the logarithm of what is spent by that of r, from a sample of the elements."""
    sample = some.part(slice(0, None, 1 + len(some.cost) // _SAMPLE))
    top = _Top.of(order, r)
    polled, own = _solve(sample.demerit, order, top)
    spending = sample.cost[polled] / own
    with np.errstate(all="ignore"):
        power = sample.demerit[polled] * (top.slope * top.r) / (order.slope(own) * own)
    # It has no bound for elements on the verge of being polled, and is unknown where slopes underflow.
    power = np.where(power <= _ELASTIC, power, _ELASTIC)
    return -float(spending @ power / spending.sum()) if len(spending) else 0.0


def _fill(out: Floats, polled: NDArray[np.intp], frequencies: Floats, others: Floats | float) -> None:
    if len(polled) < len(out):
        out[:] = others
        out[polled] = frequencies
    else:
        out[:] = frequencies


def _scaled(some: Candidates, frequencies: Floats, factor: float) -> Floats:
    """Removes the last error of the spending; floors stay."""
    if some.low is None:
        frequencies *= factor
        return frequencies
    return np.where(frequencies > some.low, some.low + (frequencies - some.low) * factor, some.low)
