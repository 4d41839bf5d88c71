"""What the simulator predicts for a run of ``freshet bench freshness`` from the measured costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from freshet.bench.freshness_load import Costs, Event
from freshet.bench.freshness_queries import Question
from freshet.policies import Policy
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import Outcome
from freshet.simulation.single import SingleWorker
from freshet.simulation.world import SimulatedQuery

_TUPLES: Final = 400
"""Simulated tuples of the smallest arrival: each stands for many rows, or drawing them would take longer than they do.
The probability that one of them matches stays 1 to many digits, as it is with all rows."""


def predict(
    policy: Policy, events: Sequence[Event], questions: Sequence[Question], costs: Costs, seconds: float
) -> Outcome:
    """The outcome of a policy over the same arrivals, each step taking its overhead and its work exactly."""
    grain = max(1, min(event.rows for event in events) // _TUPLES)
    streams = {stream: _arrivals(events, stream, grain) for stream in dict.fromkeys(each.stream for each in questions)}
    queries = [
        SimulatedQuery(each.name, each.stream, tuple(Profile(cost * grain, share) for cost, share in profile))
        for each in questions
        for profile in (costs.profile(each.name),)
    ]
    worker = SingleWorker(streams, queries, policy, overhead=costs.overhead, together=True)
    worker.run()
    return worker.outcome(until=seconds)


def _arrivals(events: Sequence[Event], stream: str, grain: int) -> np.ndarray:
    mine = [event for event in events if event.stream == stream]
    tuples = [round(event.rows / grain) for event in mine]
    return np.repeat([event.time for event in mine], tuples).astype(np.float64)
