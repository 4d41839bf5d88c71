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
_ROUNDS: Final = 400
_RELATED: Final = 0.5
"""A step never waits behind another of its own query. But trains that come one after the other are related by the work
that the one before left: this share of it counts."""
_JOINING: Final = 0.8
"""How long those that join a train wait, as a share of its first: half if all waits are equally long, 1 if they are
exponential. This and the constant before are set on simulated networks; tests check other networks."""
_LONG: Final = 1e6
"""Seconds of a wait that is as good as endless."""
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

    def quantile(self, share: float) -> float:
        """The latency that this share of the answers does not exceed."""
        if math.isinf(self.wait):
            return math.inf
        return float(self._at(np.array(share)))

    def utility(self, curve: Curve) -> float:
        """What its answers are worth on average."""
        if math.isinf(self.wait):
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
    shrinks, and a query never has two steps waiting. That makes it a fixed point, which is found by iteration.

    Args:
        situation: Overhead and workers.
        rates: Tuples per second of each query.
        works: Mean work of its tuples.
        squares: Mean square of the work of its tuples.
        classes: Nondecreasing; queries of equal classes are served in the order in which they wait.
    """
    overhead, workers = situation.overhead, situation.workers
    _, begins, which = np.unique(classes, return_index=True, return_inverse=True)
    ends = np.append(begins[1:], len(rates))
    waits = np.zeros(len(rates))
    for _ in range(_ROUNDS):
        trains = 1.0 + rates * waits
        steps = overhead + trains * works
        shares = rates / trains * steps / workers
        # The number of tuples that join a train varies, and so does their work.
        seconds = steps**2 + (trains - 1.0) * squares + (squares - works**2)
        running = float((rates / trains * seconds).sum()) / (2.0 * workers**2)
        sums = np.append(0.0, np.cumsum(shares))
        own = 1.0 - _RELATED * trains * works / np.maximum(steps, 1e-300)
        better, mine = sums[begins][which], sums[ends][which] - own * shares
        left = np.clip(1.0 - better, 0.0, None) * np.clip(1.0 - mine, 0.0, None)
        new = np.minimum(_LONG, running / np.maximum(left, 1e-12))
        if np.abs(new - waits).max() < 1e-9 * (1.0 + waits.max()):
            break
        # Waits grow by one another: half a step at a time.
        waits = 0.5 * (waits + new)
    busy, loads = float(min(1.0, shares.sum())), np.cumsum(rates * works) / workers
    means = waits * (1.0 + _JOINING * (trains - 1.0)) / trains / max(busy, 1e-12)
    means[loads[ends - 1][which] >= 1.0] = math.inf
    even = overhead / np.maximum(steps, 1e-300) if len(rates) == 1 else np.zeros(len(rates))
    columns = zip(steps.tolist(), means.tolist(), even.tolist(), strict=True)
    return [Latencies(step, busy, mean, share) for step, mean, share in columns]


def promised(query: QueryDemand) -> float:
    """The latency up to which the answers of a query keep their worth; infinite if nothing was promised."""
    curve = query.promises.curve
    return math.inf if curve is None else curve.promise
