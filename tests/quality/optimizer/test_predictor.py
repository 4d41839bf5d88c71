"""Predictions against the simulator, which draws every tuple."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.engine.metering import waiting_for
from freshet.policies import FirstComeFirstServed, create
from freshet.quality.optimizer import IntervalFigures, IntervalMeter, IntervalTotals, Predictor
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World

PATH = [Profile(0.010, 0.2), Profile(0.050, 0.9), Profile(0.010)]
SECONDS = 10.0


def backlog(strategy: str, rows: int = 200, rate: float = 40.0) -> World:
    """A query that runs by a strategy, before it has begun: some tuples wait, and others come evenly."""
    arrivals = np.concatenate([np.zeros(rows), np.arange(0.0, SECONDS, 1.0 / rate) + 1e-9])
    query = SimulatedQuery.straight("q", "s", PATH)
    return World({"s": arrivals}, [query], create(strategy), sizes={"s": 80})


def simulated(strategy: str) -> IntervalFigures:
    world = backlog(strategy)
    board, engine = world.engine.board, world.engine
    meter = IntervalMeter(0.0)
    state = board.queries[board.numbers["q"]]

    class Watch:
        def tell(self, event: object) -> None:
            meter.wait(engine.clock.now(), waiting_for(state, board, engine.log))

    engine.observers.append(Watch())
    world.run(until=SECONDS)
    return meter.close(SECONDS, IntervalTotals.of(engine.meters.queries["q"], {"s": engine.log.end("s")}))


def predicted(strategy: str) -> IntervalFigures:
    world = World(
        {"s": np.zeros(200)}, [SimulatedQuery.straight("q", "s", PATH)], FirstComeFirstServed(), sizes={"s": 80}
    )
    world.engine._take_arrivals()  # so that what waits is on the board, and nothing has run
    return Predictor(world.engine.board, 0, {0: 40.0}).predict(create(strategy), SECONDS)


@pytest.mark.parametrize("strategy", ["pcs(5)", "segment(5)", "simplified-segment(5)"])
def test_predictions_are_near_to_what_the_simulator_measures(strategy: str) -> None:
    real, expected = simulated(strategy).observed, predicted(strategy).observed
    for measure in ("latency", "memory", "throughput"):
        assert expected[measure] == pytest.approx(real[measure], rel=0.25), measure


def test_predictions_rank_strategies_as_the_simulator_does() -> None:
    strategies = ("pcs(5)", "segment(5)")
    for measure in ("latency", "memory"):
        real = sorted(strategies, key=lambda name: simulated(name).observed[measure] or 0.0)
        expected = sorted(strategies, key=lambda name: predicted(name).observed[measure] or 0.0)
        assert real == expected, measure


def test_other_queries_take_time() -> None:
    world = World({"s": np.zeros(100)}, [SimulatedQuery.straight("q", "s", PATH)], FirstComeFirstServed())
    world.engine._take_arrivals()
    alone, beside = (
        Predictor(world.engine.board, 0, {0: 30.0}, share).predict(create("pcs(5)"), SECONDS) for share in (1.0, 0.5)
    )
    assert (alone.observed["latency"] or 0.0) < (beside.observed["latency"] or 0.0)
    assert (alone.observed["throughput"] or 0.0) > (beside.observed["throughput"] or 0.0)


def test_nothing_comes_of_nothing() -> None:
    world = World({"s": np.zeros(0)}, [SimulatedQuery.straight("q", "s", PATH)], FirstComeFirstServed())
    figures = Predictor(world.engine.board, 0, {0: 0.0}).predict(create("pcs"), SECONDS)
    assert figures.observed == {"latency": None, "memory": 0.0, "throughput": None}
