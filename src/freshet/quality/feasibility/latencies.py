"""The latencies to expect: how long a tuple waits for its step, and how long the step takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.model import Curve
from freshet.quality.feasibility.situation import QueryDemand, Situation

Floats = NDArray[np.float64]
_ROUNDS: Final = 100
_HALVINGS: Final = 40
"""Number of times that a range is halved in search of a figure."""
_RELATED: Final = 0.5
"""A step never waits behind another of its own query. But trains that come one after the other are related by the work
that the one before left: this share of it counts."""
_JOINING: Final = 0.8
"""How long those that join a train wait, as a share of its first: half if all waits are equally long, 1 if they are
exponential. This and the constant before are set on simulated networks; tests check other networks."""
_LONG: Final = 1e6
"""Seconds of a wait that is as good as endless."""
_ENDLESS: Final = 0.05 * _LONG
"""The same of a mean wait: it has been cut off at the figure before."""
_GRID: Final[Floats] = np.linspace(0.00125, 0.99875, 400)
"""Probabilities at which a utility is averaged."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latency to expect for the answers of a query: a step, after a wait that may be 0.

    Args:
        step: Seconds that its step takes.
        busy: The chance that it has to wait at all.
        wait: Mean wait of those that do; infinite if more comes in than can be done.
        even: From 0 (waits are exponential) to 1 (they lie evenly between 0 and twice the mean).

    >>> Latencies(step=1.0, busy=0.5, wait=2.0).quantile(0.4), round(Latencies(1.0, 0.5, 2.0).quantile(0.95), 2)
    (1.0, 5.61)
    >>> round(Latencies(1.0, 0.5, 2.0).utility(Curve.deadline(1.0 + 2.0 * math.log(2))), 2)
    0.75
    """

    step: float
    busy: float
    wait: float
    even: float = 0.0

    @property
    def endless(self) -> bool:
        """Whether more comes in than can be done, so that waits grow and grow."""
        return self.busy > 0.0 and self.wait >= _ENDLESS

    def quantile(self, share: float) -> float:
        """The latency that this share of the answers does not exceed."""
        if self.endless:
            return math.inf
        return float(self._at(np.array(share)))

    @property
    def mean(self) -> float:
        """The mean latency."""
        if self.endless:
            return math.inf
        return self.step + self.busy * self.wait if self.busy else self.step

    def utility(self, curve: Curve) -> float:
        """What its answers are worth on average."""
        if self.endless:
            return curve.utility(math.inf)
        return float(curve.utilities(self._at(_GRID)).mean())

    def _at(self, shares: Floats) -> Floats:
        """The latencies that these shares of the answers do not exceed."""
        beyond = (1.0 - shares) / max(self.busy, 1e-12)
        waits = 2.0 * self.even * (1.0 - beyond) - (1.0 - self.even) * np.log(beyond)
        found: Floats = self.step + self.wait * np.maximum(waits, 0.0)
        return found


def together(situation: Situation) -> dict[str, Latencies]:
    """The latencies if each step runs all queries over everything that waits: they are one query to the queue.

    The larger the overhead, the more regularly step follows step; each does what came during the one before.

    >>> from freshet.model import Promises
    >>> found = together(Situation((QueryDemand("q", 1000.0, 0.0005, Promises()),), overhead=0.1))
    >>> round(found["q"].step, 2), round(found["q"].wait, 2), round(found["q"].busy, 2)
    (0.17, 0.11, 1.0)
    """
    queries, rate = situation.queries, sum(each.rate for each in situation.queries)
    if not rate:
        return {each.name: Latencies(situation.overhead + each.work, 0.0, 0.0) for each in queries}
    mean = sum(each.load for each in queries) / rate
    square = sum(each.rate * each.work**2 for each in queries) / rate
    [latencies] = _settled(situation, np.array([rate]), np.array([mean]), np.array([square]), [0.0])
    return {each.name: latencies for each in queries}


def apart(situation: Situation) -> dict[str, Latencies]:
    """The latencies if a step runs one query, the one with the tightest promise first, over all that waits for it.

    >>> from freshet.model import Promises
    >>> queries = tuple(QueryDemand(name, 10.0, 0.04, Promises(curve=Curve.deadline(limit)))
    ...                 for name, limit in (("tight", 0.1), ("loose", 2.0)))
    >>> found = apart(Situation(queries, overhead=0.0))
    >>> round(found["tight"].busy, 2), found["tight"].wait < found["loose"].wait
    (0.8, True)
    """
    queries = sorted(situation.queries, key=promised)
    if not queries:
        return {}
    rates, works = (np.array([getattr(each, key) for each in queries]) for key in ("rate", "work"))
    found = _settled(situation, rates, works, works**2, list(map(promised, queries)))
    return {each.name: latencies for each, latencies in zip(queries, found, strict=True)}


def _settled(
    situation: Situation, rates: Floats, works: Floats, squares: Floats, classes: Sequence[float]
) -> list[Latencies]:
    """The latencies of queries in the order of their classes, the best first.

    It is a queue without pre-emption (Cobham's mean waits by class) with one more idea: while the first tuple of a
    train waits, others join it, and all of them pay for one step. So trains grow with the load, the overhead of a tuple
    shrinks, and a query never has two steps waiting. That makes it a fixed point. Mostly some rounds of iteration find
    it. Where overhead takes nearly all of the time, they swing from one end to the other: then it is bisected.

    Args:
        situation: Overhead and workers.
        rates: Tuples per second of each query.
        works: Mean work of its tuples.
        squares: Mean square of the work of its tuples.
        classes: Nondecreasing; queries of equal classes are served in the order in which they wait.
    """
    demand = _Demand(rates, works, squares, np.unique(classes, return_index=True)[1], situation)
    waits = demand.iterated()
    if waits is None:
        waits = demand.bisected()
    trains, steps = demand.trains(waits), demand.steps(waits)
    busy, loads = float(min(1.0, demand.shares(waits).sum())), np.cumsum(rates * works) / situation.workers
    means = waits * (1.0 + _JOINING * (trains - 1.0)) / trains / max(busy, 1e-12)
    means[np.repeat(loads[demand.ends - 1], demand.ends - demand.begins) >= 1.0] = math.inf
    even = situation.overhead / np.maximum(steps, 1e-300) if len(rates) == 1 else np.zeros(len(rates))
    columns = zip(steps.tolist(), means.tolist(), even.tolist(), strict=True)
    return [Latencies(step, busy, mean, share) for step, mean, share in columns]


class _Demand:
    """What comes in, class by class, and the waits that follow from what is left of a running step."""

    def __init__(
        self, rates: Floats, works: Floats, squares: Floats, begins: NDArray[np.intp], situation: Situation
    ) -> None:
        self.rates, self.works, self.squares = rates, works, squares
        self.overhead, self.workers = situation.overhead, situation.workers
        self.begins, self.ends = begins, np.append(begins[1:], len(rates))

    def trains(self, waits: Floats) -> Floats:
        """Mean tuples of a train: its first, and those that come while it waits."""
        return 1.0 + self.rates * waits

    def steps(self, waits: Floats) -> Floats:
        """Mean seconds of a step."""
        return self.overhead + self.trains(waits) * self.works

    def shares(self, waits: Floats) -> Floats:
        """Share of the workers' time that each query takes; the longer it waits, the less overhead."""
        return self.rates / self.trains(waits) * self.steps(waits) / self.workers

    def residual(self, waits: Floats) -> float:
        """Mean seconds left of what runs when a train begins to wait."""
        trains = self.trains(waits)
        # The number of tuples that join a train varies, and so does their work.
        seconds = self.steps(waits) ** 2 + (trains - 1.0) * self.squares + (self.squares - self.works**2)
        return float((self.rates / trains * seconds).sum()) / (2.0 * self.workers**2)

    def iterated(self) -> Floats | None:
        """The waits of the fixed point, if iteration finds it."""
        counts = self.ends - self.begins
        waits = np.zeros(len(self.rates))
        for _ in range(_ROUNDS):
            trains, shares, steps = self.trains(waits), self.shares(waits), self.steps(waits)
            sums = np.append(0.0, np.cumsum(shares))
            own = 1.0 - _RELATED * trains * self.works / np.maximum(steps, 1e-300)
            better, mine = np.repeat(sums[self.begins], counts), np.repeat(sums[self.ends], counts) - own * shares
            left = np.clip(1.0 - better, 0.0, None) * np.clip(1.0 - mine, 0.0, None)
            new = np.minimum(_LONG, self.residual(waits) / np.maximum(left, 1e-12))
            if np.abs(new - waits).max() < 1e-9 * (1.0 + waits.max()):
                return waits
            # Waits grow by one another: half a step at a time.
            waits = 0.5 * (waits + new)
        return None

    def bisected(self) -> Floats:
        """The waits of the fixed point, by what is left of a running step: waits follow from it, and it from waits."""
        low, high = 0.0, _LONG
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high) if low else high * 1e-3
            low, high = (middle, high) if self.residual(self.waits(middle)) > middle else (low, middle)
        return self.waits(high)

    def waits(self, residual: float) -> Floats:
        """Mean wait of the first tuple of a train, class by class: the share that the better classes take is known."""
        waits, better = np.full(len(self.rates), _LONG), 0.0
        for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True):
            if better >= 1.0:
                break
            members = slice(begin, end)
            waits[members], better = self._in_class(members, residual / (1.0 - better), better)
        return waits

    def _in_class(self, members: slice, ahead: float, better: float) -> tuple[Floats, float]:
        """Waits of the queries of a class, and the share of time that they and all better ones take.

        The longer they wait, the less time they take, and the more time they take, the longer they wait: so there is
        one share that fits, which is bisected.
        """
        rates = self.rates[members]
        calls, loads = rates * self.overhead / self.workers, rates * self.works[members] / self.workers
        low = better + float(loads.sum())
        high = low + float(calls.sum())
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            waits = _waits(rates, calls, 1.0 - middle + _RELATED * loads, ahead)
            taken = better + float((calls / (1.0 + rates * waits) + loads).sum())
            low, high = (middle, high) if taken > middle else (low, middle)
        return _waits(rates, calls, 1.0 - high + _RELATED * loads, ahead), high


def _waits(rates: Floats, calls: Floats, left: Floats, ahead: float) -> Floats:
    """The wait x of each query with x (left + calls / (1 + rate x)) = ahead: a step does not wait for the overhead of
    its own query, which is ``calls`` at trains of one tuple. Endless where nothing is left."""
    a, b = left * rates, left + calls - ahead * rates
    root = np.sqrt(np.maximum(b * b + 4.0 * a * ahead, 0.0))
    # Of the two forms of the root, the one that does not take the difference of nearly equal numbers.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(b > 0.0, 2.0 * ahead / (b + root), (root - b) / (2.0 * a))
    return np.where(left > 0.0, np.minimum(found, _LONG), _LONG)


def promised(query: QueryDemand) -> float:
    """The latency up to which the answers of a query keep their worth, or that is expected of them; infinite if nothing
    was promised."""
    curve = query.promises.curve
    return min(math.inf if curve is None else curve.promise, query.strictest.get("latency", math.inf))
