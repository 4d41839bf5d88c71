"""The single worker gives what the engine gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Decision, Step, UserError, View
from freshet.policies import (
    Everything,
    FirstComeFirstServed,
    FreshnessAware,
    OverheadPrice,
    Policy,
    RateBased,
    RoundRobin,
    SetStep,
)
from freshet.simulation.charge import Charge
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import stale_seconds
from freshet.simulation.single import SingleWorker
from freshet.simulation.world import SimulatedQuery, World

POLICIES: dict[str, Callable[[], Policy]] = {
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
}


def setting(seed: int) -> tuple[dict[str, np.ndarray], list[SimulatedQuery]]:
    """Times that floating point adds exactly, so that both ways of adding them up agree to the last bit."""
    rng = np.random.default_rng(seed)
    streams = {name: np.sort(rng.integers(0, 640, 60) / 64.0) for name in ("s", "t", "u")}
    queries = [
        SimulatedQuery(
            f"q{index}",
            "stu"[int(rng.integers(0, 3))],
            tuple(Profile(float(rng.integers(1, 9)) / 256, float(rng.choice([0.2, 0.7, 1.0]))) for _ in range(3)),
            weight=float(rng.choice([0.25, 1.0])),
        )
        for index in range(7)
    ]
    return streams, queries


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from(sorted(POLICIES)),
    overhead=st.sampled_from([0.0, 0.125]),
    charged=st.booleans(),
    together=st.booleans(),
)
def test_it_gives_what_the_engine_gives(seed: int, name: str, overhead: float, charged: bool, together: bool) -> None:
    streams, queries = setting(seed)
    fast_policy, slow_policy = POLICIES[name](), POLICIES[name]()
    charges = [Charge(policy, 1 / 256, 1 / 512) if charged else None for policy in (fast_policy, slow_policy)]
    options: dict[str, Any] = {"overhead": overhead, "seed": seed, "together": together}
    fast = SingleWorker(streams, queries, fast_policy, charge=charges[0], **options)
    fast.run()
    slow = World(streams, queries, slow_policy, charge=charges[1], **options)
    slow.run()
    snapshot, outcome = slow.engine.snapshot(), fast.outcome()
    assert fast.now == slow.engine.clock.now()
    for query, meters in snapshot["queries"].items():
        assert outcome.by_query[query] == pytest.approx(1.0 - meters["freshness"], abs=1e-12)
    total = snapshot["total"]
    assert outcome.tuples_out == total["tuples_out"]
    assert outcome.response == pytest.approx(total["response"]["mean_s"])
    assert total["weighted_freshness"] is not None
    assert outcome.weighted_staleness == pytest.approx(1.0 - total["weighted_freshness"])


def test_stale_seconds_is_the_union_of_intervals() -> None:
    arrivals = np.array([0.0, 0.5, 3.0, 3.0])
    assert stale_seconds(arrivals, np.array([1.0, 2.0, 4.0, 5.0])) == 4.0
    assert stale_seconds(np.empty(0), np.empty(0)) == 0.0


def test_what_only_the_engine_can_do_is_said() -> None:
    class OneBox(Policy):
        name = "one-box"

        def decide(self, view: View) -> Decision:
            return Decision.run(Step((next(iter(view.ready)),)))

    worker = SingleWorker({"s": np.zeros(1)}, [SimulatedQuery("q", "s", (Profile(1.0), Profile(1.0)))], OneBox())
    with pytest.raises(UserError, match="whole paths"):
        worker.run()


def test_charges_delay_the_tuples() -> None:
    queries = [SimulatedQuery(name, "s", (Profile(1.0),)) for name in ("a", "b")]
    policy = RateBased()
    worker = SingleWorker({"s": np.zeros(1)}, queries, policy, charge=Charge(policy, extract=0.25, insert=0.5))
    worker.run()
    # 2 inserts before a; 1 extract before b.
    assert worker.now == 2 * 1.0 + 2 * 0.5 + 0.25


def test_tuples_may_depart_at_the_end_of_their_step() -> None:
    queries = [SimulatedQuery(name, "s", (Profile(1.0),)) for name in ("a", "b")]
    arrivals = {"s": np.zeros(2)}
    each = SingleWorker(arrivals, queries, Everything())
    each.run()
    assert each.outcome().response == (1.0 + 2.0 + 3.0 + 4.0) / 4
    assert each.outcome().by_query == {"a": 0.5, "b": 1.0}
    joint = SingleWorker(arrivals, queries, Everything(), together=True)
    joint.run()
    assert joint.outcome().response == 4.0
    assert joint.outcome().by_query == {"a": 1.0, "b": 1.0}


def test_an_outcome_can_end_before_the_backlog() -> None:
    worker = SingleWorker({"s": np.array([0.0, 4.0])}, [SimulatedQuery("q", "s", (Profile(1.0),))], RoundRobin())
    worker.run()
    assert worker.outcome().staleness == 2.0 / 5.0
    assert worker.outcome(until=4.0).staleness == 1.0 / 4.0
    assert worker.outcome(until=0.5).staleness == 1.0
