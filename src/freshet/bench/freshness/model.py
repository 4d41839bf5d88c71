"""What the simulator predicts for a run of ``freshet bench freshness`` or ``qos`` from the measured costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.bench.freshness.load import LoadBatch, MeasuredCosts
from freshet.bench.freshness.queries import Question
from freshet.model import Curve
from freshet.policies import Policy
from freshet.quality.qos import Qos, QosMeter, overall
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.outcome import stale_seconds
from freshet.simulation.world import SimulatedQuery

Floats = NDArray[np.float64]

_TUPLES: Final = 400
"""Number of simulated tuples of the smallest arrival. Each stands for many rows; otherwise drawing them would take
longer than processing them. The probability that one of them matches stays 1 to many digits, as with all rows."""


def predict(
    policy: Policy,
    events: Sequence[LoadBatch],
    lags: Sequence[float] | Floats,
    questions: Sequence[Question],
    costs: MeasuredCosts,
    seconds: float,
) -> float:
    """Mean staleness under a policy over the same arrivals; each step takes exactly its overhead and its work.

    Args:
        policy: The scheduler.
        events: The arrivals; staleness counts from when they were due.
        lags: By arrival, the seconds after that at which the engine saw them.
        questions: The queries.
        costs: What was measured.
        seconds: Seconds of the observation.
    """
    stale = [
        _stale(since, left, seconds) for since, left in _simulated(policy, events, lags, questions, costs).values()
    ]
    return float(np.mean(stale)) / seconds


def predict_qos(
    policy: Policy,
    events: Sequence[LoadBatch],
    lags: Sequence[float] | Floats,
    questions: Sequence[Question],
    costs: MeasuredCosts,
    curves: Mapping[str, Curve],
) -> Qos:
    """The quality of service under a policy over the same arrivals, for everything that came."""
    meters = {name: QosMeter(curve) for name, curve in curves.items()}
    for name, (since, left) in _simulated(policy, events, lags, questions, costs, curves).items():
        meters[name].add_many(left - since)
    return overall(meters)


def _simulated(
    policy: Policy,
    events: Sequence[LoadBatch],
    lags: Sequence[float] | Floats,
    questions: Sequence[Question],
    costs: MeasuredCosts,
    curves: Mapping[str, Curve] | None = None,
) -> dict[str, tuple[Floats, Floats]]:
    """By query, when its output tuples were due and when they left."""
    grain = max(1, min(event.rows for event in events) // _TUPLES)
    due = {stream: _times(events, stream) for stream in dict.fromkeys(each.stream for each in questions)}
    seen = {stream: _times(events, stream, lags) for stream in due}
    streams = {stream: np.repeat(times, _tuples(events, stream, grain)) for stream, times in seen.items()}
    queries = [
        SimulatedQuery.straight(
            each.name,
            each.stream,
            tuple(Profile(cost * grain, share) for cost, share in costs.profile(each.name)),
            curve=(curves or {}).get(each.name),
        )
        for each in questions
    ]
    world = FastWorld(streams, queries, policy, overhead=costs.overhead, departs="unit")
    world.run()
    put_out = world.departed()
    return {
        each.name: (due[each.stream][np.searchsorted(seen[each.stream], put_out[each.name][0])], put_out[each.name][1])
        for each in questions
    }


def _times(events: Sequence[LoadBatch], stream: str, lags: Sequence[float] | Floats | None = None) -> Floats:
    late = np.zeros(len(events)) if lags is None else np.asarray(lags)
    times = [event.time + lag for event, lag in zip(events, late, strict=True) if event.stream == stream]
    return np.maximum.accumulate(np.array(times, dtype=np.float64)) if times else np.empty(0)


def _tuples(events: Sequence[LoadBatch], stream: str, grain: int) -> list[int]:
    return [round(event.rows / grain) for event in events if event.stream == stream]


def _stale(since: Floats, left: Floats, until: float) -> float:
    """Seconds of staleness up to a moment, counted from when tuples were due, not from when they were seen."""
    early = since < until
    return stale_seconds(since[early], np.minimum(left[early], until))
