"""Automatic beta in simulated time: the bound is kept, the other figure is as good as that allows, and beta is stable
under load steps (FAS §5.2)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.arrivals import Poisson
from freshet.engine.optimizer.beta_keeper import BetaKeeper
from freshet.model import UserError
from freshet.model.promises.balance import BalanceBound
from freshet.policies import FreshnessAware
from freshet.quality.optimizer.beta import BetaFinder
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import SimulationOutcome
from freshet.simulation.world import SimulatedQuery, World

QUERIES = 24


def streams_of(loads: list[tuple[float, float]], costs: list[float]) -> dict[str, np.ndarray]:
    """Arrivals at one load after the other, each for some seconds; every other stream comes in bursts of ten."""
    found = {}
    for number, cost in enumerate(costs):
        burst, begin, parts = 10 if number % 2 else 1, 0.0, []
        for place, (load, seconds) in enumerate(loads):
            rate = load / QUERIES / cost / burst
            times = begin + Poisson(rate, seed=1000 * place + number).first(round(rate * seconds) + 1)
            parts.append(times[times < begin + seconds])
            begin += seconds
        found[f"s{number}"] = np.repeat(np.concatenate(parts), burst)
    return found


def ran(loads: list[tuple[float, float]], beta: float | BalanceBound) -> tuple[SimulationOutcome, list[float], World]:
    """The outcome of a run, and beta at each look."""
    generator = np.random.default_rng(7)
    costs = [float(each) for each in generator.choice([0.002, 0.008, 0.02], QUERIES)]
    matches = [float(each) for each in generator.choice([0.02, 0.1, 0.4, 0.9], QUERIES)]
    queries = [
        SimulatedQuery.straight(f"q{number}", f"s{number}", [Profile(cost, match)])
        for number, (cost, match) in enumerate(zip(costs, matches, strict=True))
    ]
    policy = FreshnessAware(beta if isinstance(beta, float) else 1.0)
    world, betas = World(streams_of(loads, costs), queries, policy), list[float]()
    if isinstance(beta, BalanceBound):
        keeper = BetaKeeper(world.engine, beta, policy, every=5.0)
        world.engine.observers.append(keeper)

        class Betas:
            def tell(self, event: object) -> None:
                if len(betas) < keeper.finder.looks:
                    betas.append(policy.beta)

        world.engine.observers.append(Betas())
    world.run()
    return world.outcome(), betas, world


@pytest.fixture(scope="module")
def ends() -> tuple[SimulationOutcome, SimulationOutcome]:
    """The two ends at a steady load: best response time, best freshness."""
    return ran([(0.95, 300.0)], 0.0)[0], ran([(0.95, 300.0)], 1.0)[0]


def test_a_bound_on_response_time_is_kept_and_outputs_are_fresher_than_at_the_quick_end(
    ends: tuple[SimulationOutcome, SimulationOutcome],
) -> None:
    quick, fresh = ends
    assert quick.response < 0.95 * fresh.response
    bound = 0.5 * (quick.response + fresh.response)
    outcome, betas, _ = ran([(0.95, 300.0)], BalanceBound("response", bound))
    assert outcome.response <= 1.05 * bound
    assert outcome.staleness < quick.staleness
    assert 0.05 < np.mean(betas[10:]) < 0.95


def test_a_bound_on_freshness_is_kept_and_answers_are_quicker_than_at_the_fresh_end(
    ends: tuple[SimulationOutcome, SimulationOutcome],
) -> None:
    quick, fresh = ends
    stale = 0.5 * (quick.staleness + fresh.staleness)
    outcome, _, _ = ran([(0.95, 300.0)], BalanceBound("freshness", 1.0 - stale))
    assert outcome.staleness <= 1.05 * stale
    assert outcome.response < fresh.response


def test_it_follows_load_steps_without_swinging(ends: tuple[SimulationOutcome, SimulationOutcome]) -> None:
    quick, fresh = ends
    bound = BalanceBound("response", 0.5 * (quick.response + fresh.response))
    _, betas, _ = ran([(0.5, 150.0), (0.95, 300.0), (0.5, 150.0)], bound)
    calm, busy, after = betas[:30], betas[30:90], betas[-25:]
    # With time to spare it is as fresh as can be, under load as the bound allows, and back again.
    assert np.mean(calm[5:]) > 0.95
    assert np.mean(busy[5:]) < np.mean(calm[5:]) - 0.1
    assert np.mean(after) > 0.9
    assert max(abs(later - earlier) for earlier, later in pairwise(betas)) <= 0.15 + 1e-9
    turns = sum((b - a) * (c - b) < 0 and abs(c - b) > 0.1 for (a, b), (_, c) in pairwise(pairwise(busy)))
    assert turns <= len(busy) / 5


def test_a_run_repeats_exactly() -> None:
    bound = BalanceBound("response", 0.05)
    assert ran([(0.9, 60.0)], bound)[1] == ran([(0.9, 60.0)], bound)[1]


@given(st.lists(st.none() | st.floats(0.0, 1e6), max_size=60), st.sampled_from(["response", "freshness"]))
def test_beta_stays_in_its_range_and_moves_the_right_way(figures: list[float | None], measure: str) -> None:
    finder = BetaFinder(BalanceBound(measure, 0.5))  # type: ignore[arg-type]
    for each in figures:
        observed = each if each is None or measure == "response" else min(1.0, each)
        before, after = finder.beta, finder.look(observed)
        assert 0.0 <= after <= 1.0
        if observed is not None and finder.bound.excess(observed) > 0.0:
            assert (after <= before) if measure == "response" else (after >= before)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "expect: must be"),
        ("fast", "expect: must be"),
        ({"response": "1 s", "freshness": 0.5}, "expect: must be"),
        ({"response": 0}, "cannot be kept"),
        ({"freshness": 1.0}, "a share between 0 and 1"),
        ({"freshness": True}, "a share between 0 and 1"),
    ],
)
def test_bad_bounds_are_refused(given: object, told: str) -> None:
    with pytest.raises(UserError, match=told):
        BalanceBound.parse(given)
