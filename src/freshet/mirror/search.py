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

_CLOSE: Final = 1e-8
"""Relative error of the spending at which the search ends; scaling all frequencies removes the rest."""
_NOTHING: Final = 1e-15
_STEP: Final = 20.0
"""Longest step of the logarithm of r."""
_LARGE: Final = 1e150
_ELASTIC: Final = 30.0
_CHUNK: Final = 1 << 14
"""Elements that are evaluated at once: their arrays stay in the cache of the processor."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The elements that can gain from polls.

    Args:
        price: p / (lambda s) of the element that deserves polls most.
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
    def of(cls, elements: Elements, wanted: NDArray[np.intp], low: Floats | None) -> Candidates:
        """Takes the elements of these rows."""
        everything = len(wanted) == len(elements)
        rates = elements.rates if everything else elements.rates[wanted]
        sizes = elements.sizes if everything else elements.sizes[wanted]
        worth = elements.worth if everything else elements.worth[wanted]
        cost = rates * sizes
        inverse_price = cost / worth
        cheapest = float(inverse_price.min())
        return cls(1.0 / cheapest, inverse_price / cheapest, cost, rates, None if low is None else low[wanted])


@dataclass(frozen=True, slots=True)
class Found:
    """The frequencies of the candidates, and their mu."""

    frequencies: Floats
    mu: float
    evaluations: int


def search(some: Candidates, budget: float, order: PollOrder, start: float | None) -> Found:
    """Finds the r of the most deserving element at which the budget is spent, by secants between bounds.

    The logarithm of what is spent is nearly linear in the logarithm of that r, for small and for large budgets alike;
    mu itself approaches its bound exponentially, and a float cannot tell small budgets apart by it. The first step is
    Newton's. Later ones use secants, because single elements on the verge of being polled make derivatives jump.
    """
    frequencies = np.empty(len(some.cost))
    there = log(_first(some, budget, order, start))
    spent, slope = _evaluate(some, order, exp(there), frequencies, sloped=True)
    bounds = _Bounds()
    evaluations = 1
    while not bounds.narrow(there, error := _log_ratio(spent, budget)):
        before, there = there, bounds.next(there, error, slope)
        spent, _ = _evaluate(some, order, exp(there), frequencies)
        slope = (_log_ratio(spent, budget) - error) / (there - before)
        evaluations += 1
    gain = float(order.gain(np.array([exp(there)]))[0])
    return Found(_scaled(some, frequencies, budget / spent), some.price * gain, evaluations)


def _first(some: Candidates, budget: float, order: PollOrder, start: float | None) -> float:
    """The r of the most deserving element to begin with: by the mu of an earlier plan, or as if budgets were large.

    For large budgets g(r) is proportional to r^2, so that r grows with the root of the demerit.
    """
    if start is not None and 0.0 < start < some.price:
        gain = start / some.price
        r = float(order.inverse(np.array([gain]), np.array([1.0 - gain]))[0])
        if 0.0 < r < np.inf:
            return r
    return min(float((some.cost / np.sqrt(some.demerit)).sum()) / budget, _LARGE)


def _log_ratio(spent: float, budget: float) -> float:
    return log(spent / budget) if spent > 0.0 else -np.inf


class _Bounds:
    """Where the solution lies: the logarithms of r with the least error on each side so far."""

    def __init__(self) -> None:
        self._low, self._high = -np.inf, np.inf

    def narrow(self, there: float, error: float) -> bool:
        """Takes in an error; whether it is small enough, or no float is left between the bounds."""
        if error > 0.0:
            self._low = there
        else:
            self._high = there
        return abs(error) <= _CLOSE or self._high - self._low <= _NOTHING * max(1.0, abs(there))

    def next(self, there: float, error: float, slope: float) -> float:
        """The next place to look at: on the secant, or in the middle of the bounds if that lies outside."""
        if slope < 0.0 and np.isfinite(error / slope):
            ahead = there + min(max(-error / slope, -_STEP), _STEP)
            if self._low < ahead < self._high:
                return ahead
        if np.isfinite(self._low) and np.isfinite(self._high):
            return 0.5 * (self._low + self._high)
        return there + (_STEP if error > 0.0 else -_STEP)


def _evaluate(
    some: Candidates, order: PollOrder, r: float, out: Floats, *, sloped: bool = False
) -> tuple[float, float]:
    """Fills in the frequencies; what is spent beyond the floors, and the slope of its logarithm by that of r."""
    there = np.array([r])
    gain, lack, slope = (float(each(there)[0]) for each in (order.gain, order.lack, order.slope))
    top = _Top(r, gain, lack, slope * r if sloped else None)
    spent = steep = 0.0
    for begin in range(0, len(out), _CHUNK):
        more, steeper = _evaluate_part(some, order, slice(begin, begin + _CHUNK), top, out)
        spent += more
        steep += steeper
    return spent, -steep / spent if spent > 0.0 else 0.0


class _Top(NamedTuple):
    """The most deserving element: its r, gain and lack, and the derivative of its gain by the logarithm of r."""

    r: float
    gain: float
    lack: float
    pull: float | None


def _evaluate_part(
    some: Candidates, order: PollOrder, part: slice, top: _Top, out: Floats
) -> tuple[float, float]:
    demerit, cost, rates = some.demerit[part], some.cost[part], some.rates[part]
    # Of the two forms of 1 - demerit * gain, the first is exact near demerit 1, the second elsewhere.
    lacks = np.where(demerit < 2.0, (1.0 - demerit) + demerit * top.lack, 1.0 - demerit * top.gain)
    best = demerit == 1.0
    polled = np.flatnonzero((lacks > 0.0) | best)
    if len(polled) < len(demerit):
        demerit, cost, rates, lacks, best = (each[polled] for each in (demerit, cost, rates, lacks, best))
    with np.errstate(all="ignore"):  # the lack of the most deserving may underflow; their r is known
        r = order.inverse(np.minimum(demerit * top.gain, 1.0), lacks)
    r[best] = top.r
    spending, frequencies = cost / r, rates / r
    if some.low is not None:
        low = some.low[part][polled]
        spending = np.where(frequencies > low, spending * (1.0 - low / np.maximum(frequencies, low)), 0.0)
        frequencies = np.maximum(frequencies, low)
    _fill(out[part], polled, frequencies, 0.0 if some.low is None else some.low[part])
    steep = 0.0 if top.pull is None else float(spending @ _elasticity(order, demerit, r, top.pull))
    return float(spending.sum()), steep


def _elasticity(order: PollOrder, demerit: Floats, r: Floats, pull: float) -> Floats:
    """By which power of the top's r an element's r grows; it has no bound for those on the verge of being polled."""
    with np.errstate(all="ignore"):
        power = demerit * pull / (order.slope(r) * r)
    return np.nan_to_num(np.minimum(power, _ELASTIC), nan=1.0)


def _fill(out: Floats, polled: NDArray[np.intp], frequencies: Floats, others: Floats | float) -> None:
    if len(polled) < len(out):
        out[:] = others
        out[polled] = frequencies
    else:
        out[:] = frequencies


def _scaled(some: Candidates, frequencies: Floats, factor: float) -> Floats:
    """Removes the last error of the spending; floors stay."""
    if some.low is None:
        return frequencies * factor
    return np.where(frequencies > some.low, some.low + (frequencies - some.low) * factor, some.low)
