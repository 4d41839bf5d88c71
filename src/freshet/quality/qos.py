"""Quality of service: the utility of output tuples by their latency (CAR §4.3.2, §4.6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freshet.model import ChainResult, Curve
from freshet.quality.snapshots import QosSnapshot


class QosMeter:
    """Mean utility of a query's output tuples, and how many kept the promise of the curve.

    It is exact if the departure of each tuple is known (simulated time). If a train departed as a whole, only some
    arrivals are known, evenly spaced by rank; each stands for the tuples around it.

    Args:
        curve: The curve of the query.

    >>> meter = QosMeter(Curve([(0, 1), (1, 1), (3, 0)]))
    >>> meter.add_many([0.5, 2.0])
    >>> meter.mean, meter.count, meter.late
    (0.75, 2, 1)
    """

    __slots__ = ("_sum", "count", "curve", "late")

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.count = 0
        self.late = 0
        """Number of output tuples later than the curve's promise."""
        self._sum = 0.0

    @property
    def mean(self) -> float | None:
        """Average QoS of the query; None before its first output tuple."""
        return self._sum / self.count if self.count else None

    @property
    def total(self) -> float:
        """Summed utility of its output tuples."""
        return self._sum

    def record(self, result: ChainResult, departure: float) -> None:
        """Records output tuples of a chain that departed, each at its own time if that is known."""
        if not result.rows_out or result.failure is not None:
            return
        arrivals = np.asarray(result.arrivals, dtype=np.float64)
        if result.departures is not None:
            self.add_many(np.asarray(result.departures) - arrivals)
        else:
            self._add_ranks(departure - arrivals, result.rows_out)

    def add_many(self, latencies: ArrayLike) -> None:
        """Records output tuples with these latencies."""
        times = np.asarray(latencies, dtype=np.float64)
        self.count += len(times)
        self.late += int(np.count_nonzero(times > self.curve.promise))
        self._sum += float(self.curve.utilities(times).sum())

    def _add_ranks(self, times: np.ndarray, rows: int) -> None:
        """Gives every output tuple the latency of its place between two known ones."""
        places = np.linspace(0.0, len(times) - 1.0, rows)
        self.add_many(np.interp(places, np.arange(len(times)), times))

    def snapshot(self) -> QosSnapshot:
        """The figures as plain values, for reports."""
        return {"mean": self.mean, "count": self.count, "late": self.late}


@dataclass(frozen=True, slots=True)
class Qos:
    """Quality of service over several queries; the two averages differ (CAR Table 4.6).

    Args:
        average: The mean over the tuples of each query, then over the queries: how content applications are.
        per_tuple: The mean over all output tuples: what share of them was worth something.
        by_query: The average of each query.
        late: Number of output tuples later than their curve's promise.
        count: Number of output tuples.
    """

    average: float
    per_tuple: float
    by_query: Mapping[str, float]
    late: int
    count: int


def overall(meters: Mapping[str, QosMeter]) -> Qos:
    """The QoS over queries; queries without output tuples do not count.

    >>> many, few = QosMeter(Curve.deadline(1.0)), QosMeter(Curve.deadline(1.0))
    >>> many.add_many([0.5] * 9); few.add_many([2.0])
    >>> qos = overall({"many": many, "few": few})
    >>> qos.average, qos.per_tuple
    (0.5, 0.9)
    """
    means = {name: meter.mean for name, meter in meters.items()}
    by_query = {name: mean for name, mean in means.items() if mean is not None}
    count = sum(meter.count for meter in meters.values())
    return Qos(
        average=math.fsum(by_query.values()) / len(by_query) if by_query else 1.0,
        per_tuple=math.fsum(meter.total for meter in meters.values()) / count if count else 1.0,
        by_query=by_query,
        late=sum(meter.late for meter in meters.values()),
        count=count,
    )
