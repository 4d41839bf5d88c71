"""Expectations are judged in advance: latency, memory and throughput, also against simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from freshet.arrivals import Poisson
from freshet.model import Expectations, Promises
from freshet.policies import create
from freshet.quality.feasibility import QueryDemand, Situation, Verdict, expectations
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.world import SimulatedQuery


def demand(name: str, rate: float, work: float, expect: dict[str, Any] | None = None, **other: Any) -> QueryDemand:
    return QueryDemand(name, rate, work, Promises(expect=Expectations.parse(expect or {})), **other)


def judged(*queries: QueryDemand, overhead: float = 0.005) -> list[Verdict]:
    return list(expectations(Situation(queries, overhead)))


def test_the_strictest_figure_of_a_life_counts() -> None:
    loose = demand("q", 10.0, 0.01, {"latency": [[0, "5 s"], [60, "1 s"]]})
    strict = demand("q", 10.0, 0.01, {"latency": [[0, "5 s"], [60, "10 ms"]]})
    assert [each.feasible for each in (*judged(loose), *judged(strict))] == ["yes", "no"]
    assert judged(strict)[0].promise == "latency 10 ms (best-effort), the strictest over its life"


def test_loosening_as_advised_makes_it_feasible() -> None:
    [verdict] = judged(demand("q", 20.0, 0.03, {"latency": "36 ms"}))
    assert verdict.feasible == "no"
    assert verdict.room is not None
    assert verdict.room < 1.0
    advised = verdict.advice.split("expect ")[1].split(",")[0]
    # What people read is rounded.
    value = float(advised.split()[0]) * 1.01
    assert judged(demand("q", 20.0, 0.03, {"latency": f"{value} ms"}))[0].feasible != "no"


def test_memory_is_what_comes_in_times_how_long_it_stays() -> None:
    size = {"tuple_bytes": 100.0}
    calm, busy = (judged(demand("q", rate, 0.001, {"memory": "2 kB"}, **size))[0] for rate in (100.0, 900.0))
    assert (calm.feasible, busy.feasible) == ("yes", "no")
    assert calm.room is not None
    at_the_edge = judged(demand("q", 100.0 * calm.room, 0.001, {"memory": "2 kB"}, **size))[0]
    assert at_the_edge.room == pytest.approx(1.0, abs=0.05)
    assert judged(demand("q", 100.0, 0.001, {"memory": "2 kB"}))[0].feasible == "unknown"


def test_throughput_is_bounded_by_what_comes_out_and_by_the_workers() -> None:
    wish = {"throughput": "50 rows/s"}
    enough, few = (
        judged(demand("a", 100.0, 0.001, wish, out=60.0))[0],
        judged(demand("b", 100.0, 0.001, wish, out=40.0))[0],
    )
    assert (enough.feasible, few.feasible) == ("yes", "no")
    assert few.reason == "of 100 rows/s that come in, no more than 40 rows/s come out"
    crowded = judged(demand("a", 100.0, 0.001, wish, out=60.0), demand("heavy", 10.0, 0.2))
    assert [each.feasible for each in crowded] == ["no"]
    assert "capacity" in crowded[0].reason
    assert "move heavy to another application" in crowded[0].advice


def test_it_names_the_query_whose_move_helps() -> None:
    [verdict] = judged(demand("alerts", 5.0, 0.002, {"latency": "30 ms"}), demand("report", 2.0, 0.3))
    assert verdict.feasible == "no"
    assert "move report to another application" in verdict.advice


def test_periodic_queries_and_queries_without_tuples() -> None:
    wish = Expectations.parse({"latency": "1 s"})
    periodic = QueryDemand("p", 1.0, 0.1, Promises(period=1.0, expect=wish))
    assert judged(periodic, demand("quiet", 0.0, 0.0, {"latency": "1 s"})) == [
        Verdict("quiet", "latency 1 s (best-effort)", "unknown", reason="nothing has come in for it yet")
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_latency_to_expect_is_near_the_simulated_one(seed: int) -> None:
    """One query, two, or several of different costs, at loads from 0.3 to 0.8: what is expected of each is the mean
    response time that a simulation has, so it is just feasible there, and not for a third less."""
    generator = np.random.default_rng([seed, 16])
    count = int(generator.integers(1, 6))
    works = generator.uniform(5e-4, 2e-3, count)
    load = float(generator.uniform(0.3, 0.8))
    rates = load * generator.dirichlet(np.full(count, 4.0)) / works
    overhead = float(generator.choice([0.0, 1.0, 4.0]) * works.mean())
    streams = {f"s{at}": Poisson(rate, seed=100 * seed + at).first(int(20 * rate)) for at, rate in enumerate(rates)}
    queries = [SimulatedQuery.straight(f"q{at}", f"s{at}", [Profile(work)]) for at, work in enumerate(works)]
    world = FastWorld(streams, queries, create("everything"), overhead=overhead, seed=seed, departs="unit")
    world.run()
    reached = world.outcome().response
    for factor, feasible in ((1.35, True), (0.65, False)):
        wish = {"latency": factor * reached}
        situation = [demand(f"q{at}", rates[at], works[at], wish) for at in range(count)]
        found = judged(*situation, overhead=overhead)
        kept = [each.feasible != "no" for each in found]
        assert all(kept) if feasible else not all(kept), (factor, [each.expected for each in found], reached)
