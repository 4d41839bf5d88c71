"""The quality that a simulated run reached, worked out from the tuples' times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freshet.model import Promises
from freshet.quality import Qos, QosMeter, overall

Floats = NDArray[np.float64]
Departed = Mapping[str, tuple[Floats, Floats]]
"""Arrivals and departures of the output tuples of each query, in the order in which they left."""


@dataclass(slots=True)
class Work:
    """What a run did.

    Args:
        decisions: Number of decisions made.
        units: Number of steps that ran.
        calls: Number of box calls: one for each operator of a unit that got tuples.
        processing: Seconds in boxes.
        overhead: Seconds for units and for calls.
        scheduling: Seconds for scheduling.
    """

    decisions: int = 0
    units: int = 0
    calls: int = 0
    processing: float = 0.0
    overhead: float = 0.0
    scheduling: float = 0.0

    @property
    def beyond(self) -> float:
        """Seconds that were not processing."""
        return self.overhead + self.scheduling


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """What a run reached.

    Args:
        staleness: 1 - F, the mean over all outputs (FAS Eq. 3).
        weighted_staleness: The same, weighted (FAS §4.4).
        response: Mean response time over all output tuples, in seconds (FAS Def. 1).
        seconds: Length of the run.
        by_query: Staleness of each output (FAS Eq. 2).
        tuples_out: Number of output tuples of all queries.
        qos: QoS by the latency curves (CAR §4.3.2).
        work: What the run did.
    """

    staleness: float
    weighted_staleness: float
    response: float
    seconds: float
    by_query: Mapping[str, float]
    tuples_out: int
    qos: Qos
    work: Work


def stale_seconds(arrivals: Floats, departures: Floats) -> float:
    """Length of the union of the intervals [arrival, departure] of tuples, in any order.

    >>> stale_seconds(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0]))
    4.0
    """
    if not len(arrivals):
        return 0.0
    order = np.argsort(arrivals, kind="stable")
    begins, ends = arrivals[order], np.maximum.accumulate(departures[order])
    return float(ends[0] - begins[0] + (ends[1:] - np.maximum(begins[1:], ends[:-1])).clip(min=0.0).sum())


def outcome(
    departed: Departed, promises: Mapping[str, Promises], seconds: float, work: Work, until: float | None = None
) -> SimulationOutcome:
    """The outcome of a run of some seconds, with what each query put out and what it was promised.

    With ``until`` it looks only at the tuples that came before then, as if all had departed by then. That is for runs
    in which tuples stop coming while a backlog is left that depends on the policy.
    """
    if until is not None:
        departed = {name: _cut(*times, until) for name, times in departed.items()}
    span = seconds if until is None else until
    by_query = {name: stale_seconds(*times) / (span or 1.0) for name, times in departed.items()}
    latencies = {name: departures - arrivals for name, (arrivals, departures) in departed.items()}
    count = sum(map(len, latencies.values()))
    weights = {name: promises[name].weight for name in departed}
    return SimulationOutcome(
        staleness=sum(by_query.values()) / len(by_query),
        weighted_staleness=sum(weights[name] * stale for name, stale in by_query.items()) / sum(weights.values()),
        response=sum(float(each.sum()) for each in latencies.values()) / count if count else 0.0,
        seconds=span,
        by_query=by_query,
        tuples_out=count,
        qos=overall(_qos(latencies, promises)),
        work=work,
    )


def _qos(latencies: Mapping[str, Floats], promises: Mapping[str, Promises]) -> dict[str, QosMeter]:
    meters = {}
    for name, times in latencies.items():
        curve = promises[name].curve
        if curve is not None:
            meters[name] = QosMeter(curve)
            meters[name].add_many(times)
    return meters


def _cut(arrivals: Floats, departures: Floats, until: float) -> tuple[Floats, Floats]:
    came = arrivals < until
    return arrivals[came], np.minimum(departures[came], until)
