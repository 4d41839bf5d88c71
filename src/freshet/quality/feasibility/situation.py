"""What has to be known to say whether promises can be kept: rates, costs, overhead, promises."""

from __future__ import annotations

from dataclasses import dataclass, replace

from freshet.model import Promises
from freshet.model.promises.balance import BalanceBound


@dataclass(frozen=True, slots=True)
class QueryDemand:
    """What comes in for a query, and what it takes.

    Args:
        name: Of the query.
        rate: Tuples per second that come in for it.
        work: Seconds of work per such tuple, through all of its operators. What queries share is dealt out among them.
        promises: What was promised to it.
        instance: Seconds of work of one of its instances, if it is periodic; None: it is not, or none was answered yet.
        out: Tuples per second that come out of it.
        tuple_bytes: Mean bytes of the tuples that wait for it; None if that is not known.
        measured: The 95th percentile of its latencies that was measured at this rate; None if that is not known.

    >>> from freshet.model import Expectations
    >>> wish = Expectations.parse({"latency": [[0, "2 s"], [10, "1 s"]]})
    >>> QueryDemand("q", 10.0, 0.02, Promises(expect=wish)).strictest
    {'latency': 1.0}
    """

    name: str
    rate: float
    work: float
    promises: Promises
    instance: float | None = None
    out: float = 0.0
    tuple_bytes: float | None = None
    measured: float | None = None

    @property
    def load(self) -> float:
        """Seconds of work that come in per second."""
        return self.rate * self.work

    def scaled(self, factor: float) -> QueryDemand:
        """The same at another rate."""
        instance = None if self.instance is None else factor * self.instance
        measured = self.measured if factor == 1.0 else None
        return replace(self, rate=factor * self.rate, out=factor * self.out, instance=instance, measured=measured)

    @property
    def strictest(self) -> dict[str, float]:
        """By measure, the strictest figure that is expected of it over its life; of a periodic query, nothing is."""
        if self.promises.period is not None:
            return {}
        return {wish.measure: wish.strictest for wish in self.promises.expect}


@dataclass(frozen=True, slots=True)
class Situation:
    """All queries of an application with what they take.

    Args:
        queries: In any order.
        overhead: Seconds that a step takes besides its tuples.
        workers: Number of steps that run at once.
        reserve: Share of the time that continuous queries keep, whatever periodic ones need.
        bound: What all outputs together should keep, if that is said.

    >>> one = QueryDemand("q", rate=100.0, work=0.004, promises=Promises())
    >>> Situation((one,), overhead=0.01).load, round(Situation((one,), 0.01).scaled(2.0).load, 3)
    (0.4, 0.8)
    """

    queries: tuple[QueryDemand, ...]
    overhead: float
    workers: int = 1
    reserve: float = 0.0
    bound: BalanceBound | None = None

    @property
    def for_instances(self) -> float:
        """Seconds per second that instances of periodic queries can have: continuous queries keep a reserve, if there
        are any.

        >>> one, other = (QueryDemand("q", 10.0, 0.01, Promises(period=each)) for each in (None, 1.0))
        >>> Situation((other,), 0.0, reserve=0.25).for_instances, Situation((one, other), 0.0, 2, 0.25).for_instances
        (1.0, 1.5)
        """
        shared = any(each.promises.period is None for each in self.queries)
        return self.workers * (1.0 - self.reserve if shared else 1.0)

    @property
    def load(self) -> float:
        """Share of the workers' time that processing takes, without overhead; at 1 they are at their capacity."""
        return sum(each.load for each in self.queries) / self.workers

    def scaled(self, factor: float) -> Situation:
        """The same at other rates."""
        return replace(self, queries=tuple(each.scaled(factor) for each in self.queries))

    def without(self, name: str) -> Situation:
        """The same without a query."""
        return replace(self, queries=tuple(each for each in self.queries if each.name != name))
