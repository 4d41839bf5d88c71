"""The quality that a simulated run reached, worked out from the tuples' times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run reached.

    Args:
        staleness: 1 - F, the mean over all outputs (FAS Eq. 3).
        weighted_staleness: The same, weighted (FAS §4.4).
        response: Mean response time over all output tuples, in seconds (FAS Def. 1).
        seconds: Length of the run.
        by_query: Staleness of each output (FAS Eq. 2).
        tuples_out: Output tuples of all queries.
    """

    staleness: float
    weighted_staleness: float
    response: float
    seconds: float
    by_query: Mapping[str, float]
    tuples_out: int


def stale_seconds(arrivals: Floats, departures: Floats) -> float:
    """Length of the union of the intervals [arrival, departure] of tuples that depart in the order of arrival.

    >>> stale_seconds(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0]))
    4.0
    """
    if not len(arrivals):
        return 0.0
    begins = np.maximum(arrivals[1:], departures[:-1])
    return float(departures[0] - arrivals[0] + (departures[1:] - begins).sum())


def outcome(tuples: Mapping[str, tuple[Floats, Floats]], seconds: float, weights: Mapping[str, float]) -> Outcome:
    """The outcome of a run from the arrivals and departures of each query's output tuples."""
    span = seconds or 1.0
    by_query = {name: stale_seconds(*times) / span for name, times in tuples.items()}
    count = sum(len(arrivals) for arrivals, _ in tuples.values())
    waited = sum(float((departures - arrivals).sum()) for arrivals, departures in tuples.values())
    total = sum(weights.values())
    return Outcome(
        staleness=sum(by_query.values()) / len(by_query),
        weighted_staleness=sum(weights[name] * stale for name, stale in by_query.items()) / total,
        response=waited / count if count else 0.0,
        seconds=seconds,
        by_query=by_query,
        tuples_out=count,
    )
