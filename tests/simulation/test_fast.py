"""The fast loop gives what the engine gives: the same departures, calls, decisions and seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from freshet.model import NOTHING, Curve, Decision, Promises, Step, View, push_through
from freshet.policies import (
    BoxAtATime,
    Everything,
    FirstComeFirstServed,
    FreshnessAware,
    OverheadPrice,
    Policy,
    QueueShare,
    RateBased,
    RatioPolicy,
    RoundRobin,
    SetStep,
    create,
)
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.world import SimulatedQuery, World
from freshet.testing.policies import RandomSteps


class EarliestExpiry(Policy):
    """Serves what expires first, so that the views must agree on when waiting tuples expire and how many came."""

    name = "earliest"

    def decide(self, view: View) -> Decision:
        if not view.ready:
            return NOTHING
        operators = view.operators
        first = min(view.ready, key=lambda number: (operators[number].expiry(), operators[number].expiry(1), number))
        rows = 1 + operators[first].came % 3
        return Decision.run(Step(push_through(view, first), rows))


NAMES = (
    "aaat", "aaat-min-cost", "aaat-min-latency", "aaat-min-memory", "baat", "taat",
    "fixed-priority(2)", "fixed-priority-push(3)", "fixed-priority-fused", "slope-slack(2)", "slope-slack-push(1)",
    "slope-slack-push(9)", "slope-slack-fused", "bucketing(2)", "bucketing-push(3)", "bucketing-fused",
    "pcs(2)", "segment(2)", "simplified-segment(3)", "wrr(0.01)",
)  # fmt: skip
POLICIES: dict[str, Callable[[], Policy]] = {
    **{name: lambda name=name: create(name) for name in NAMES},  # type: ignore[misc]
    "anything": lambda: RandomSteps(3),
    "earliest": EarliestExpiry,
    "everything": Everything,
    "rr": RoundRobin,
    "rr 2": lambda: RoundRobin(2),
    "fcfs": FirstComeFirstServed,
    "fcfs 1": lambda: FirstComeFirstServed(1),
    "rb": RateBased,
    "rb 1": lambda: RateBased(1),
    "fas": FreshnessAware,
    "fas 1": lambda: FreshnessAware(rows=1),
    "fas(0.5)": lambda: FreshnessAware(0.5),
    "set step": lambda: FreshnessAware(steps=SetStep(OverheadPrice())),
    "queue share": lambda: BoxAtATime(trains=QueueShare(0.5), seed=1),
}
COSTS = st.integers(0, 8).map(lambda number: number / 256)
SELECTIVITIES = st.sampled_from([0.0, 0.25, 0.75, 1.0, 1.0, 1.0])
PROFILES = st.builds(Profile, COSTS, SELECTIVITIES, st.sampled_from([None, 8, 200]))
CURVES = st.sampled_from(
    [None, Curve.deadline(0.25, 0.125), Curve.deadline(2.0, 1.0), Curve([(0, 1), (1, 0.5), (4, 0)])]
)
STREAMS = ("s", "t", "u")
Streams = dict[str, np.ndarray]
Setting = tuple[Streams, list[SimulatedQuery]]


@st.composite
def graphs(draw: st.DrawFn) -> list[SimulatedQuery]:
    """Operators over streams and over operators before them; queries that end in some of them share what is above."""
    names = [f"o{number}" for number in range(draw(st.integers(1, 8)))]
    profiles = {name: draw(PROFILES) for name in names}
    inputs: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names):
        known = [*STREAMS, *names[:place], *names[:place]]
        inputs[name] = tuple(draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)))
    ends = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    queries = []
    for end in ends:
        above = _above(end, inputs)
        promises = Promises(draw(st.sampled_from([0.25, 1.0])), draw(CURVES))
        reads = {name: inputs[name] for name in names if name in above}
        queries.append(SimulatedQuery(f"q_{end}", {name: profiles[name] for name in reads}, reads, promises))
    return queries


def _above(name: str, inputs: dict[str, tuple[str, ...]]) -> set[str]:
    return {name}.union(*(_above(each, inputs) for each in inputs[name] if each in inputs))


@st.composite
def settings_of(draw: st.DrawFn) -> Setting:
    """Times that floating point adds exactly, so that both ways of adding them up agree to the last bit."""
    rng, span = np.random.default_rng(draw(st.integers(0, 10_000))), 64 * draw(st.sampled_from([1, 4, 16]))
    counts = {name: draw(st.sampled_from([40, 10, 1, 0])) for name in STREAMS}
    streams = {name: np.sort(rng.integers(0, span, count)) / 64.0 for name, count in counts.items()}
    return streams, draw(graphs())


def counted(policy: Policy) -> int:
    """What a policy counts: its operations, or those on its calendar queue."""
    if isinstance(policy, RatioPolicy):
        return policy.queue.extracts + policy.queue.inserts
    return getattr(policy, "operations", 0)


def compare(setting: Setting, make: Callable[[], Policy], **options: Any) -> None:
    streams, queries = setting
    fast, slow = (kind(streams, queries, make(), **options) for kind in (FastWorld, World))
    fast.run()
    slow.run()
    assert fast.now == pytest.approx(slow.now, abs=1e-9)
    for name, times in slow.departed().items():
        np.testing.assert_allclose(fast.departed()[name], times, atol=1e-9, rtol=0)
    for name, times in slow.due().items():
        for ours, theirs in zip(fast.due()[name], times, strict=True):
            # The order of tuples that leave together is not the same by arrival and by expiry.
            np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=1e-9, rtol=0)
    for one, other in zip(_values(fast), _values(slow), strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    event(f"up to {10 * 2 ** int(slow.work.units // 10).bit_length()} units")


def _values(world: FastWorld | World) -> list[float]:
    work, outcome = world.work, world.outcome()
    return [
        work.decisions, work.units, work.calls, work.processing, work.overhead, work.scheduling,
        outcome.staleness, outcome.weighted_staleness, outcome.response, outcome.qos.average, outcome.qos.late,
    ]  # fmt: skip


OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "overhead": st.sampled_from([0.0, 0.125]),
    "call": st.sampled_from([0.0, 1 / 64]),
    "operation": st.sampled_from([0.0, 1 / 1024]),
    "departs": st.sampled_from(["tuple", "box", "unit"]),
    "seed": st.integers(0, 5),
    "validity": st.sampled_from([{}, {"s": 2.0, "t": 0.5}, {"s": 4.0, "t": 4.0, "u": 4.0}]),
}


@settings(max_examples=150, deadline=None)
@given(setting=settings_of(), name=st.sampled_from(sorted(POLICIES)), options=st.fixed_dictionaries(OPTIONS))
def test_it_gives_what_the_engine_gives(setting: Setting, name: str, options: dict[str, Any]) -> None:
    compare(setting, POLICIES[name], counted=counted, **options)
