"""The order in which the plain policies serve."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.model import UserError
from freshet.policies import Everything, FirstComeFirstServed, FreshnessAware, Policy, RoundRobin, SetStep, create
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World


class Recorded(World):
    """A world that remembers which queries each unit served."""

    def __init__(self, streams: dict[str, np.ndarray], queries: list[SimulatedQuery], policy: Policy) -> None:
        super().__init__(streams, queries, policy)
        self.served: list[tuple[str, ...]] = []
        submit = self.engine.executor.submit

        def recorded(unit):
            network = self.engine.board.network
            self.served.append(tuple(query for chain in unit.chains for query in network.queries(chain.nodes[0])))
            submit(unit)

        self.engine.executor.submit = recorded  # type: ignore[method-assign]


def three(policy: Policy, arrivals: dict[str, list[float]]) -> list[tuple[str, ...]]:
    queries = [SimulatedQuery.straight(name, f"s_{name}", (Profile(1.0),)) for name in "abc"]
    world = Recorded({f"s_{name}": np.array(arrivals.get(name, [])) for name in "abc"}, queries, policy)
    world.run()
    return world.served


def test_round_robin_takes_turns_and_passes_over_the_idle() -> None:
    served = three(RoundRobin(rows=1), {"a": [0, 0, 0], "c": [0, 0]})
    assert served == [("a",), ("c",), ("a",), ("c",), ("a",)]


def test_fcfs_goes_by_the_oldest_waiting_tuple() -> None:
    served = three(FirstComeFirstServed(rows=1), {"a": [0, 0.5], "b": [0.2], "c": [0.1]})
    assert served == [("a",), ("c",), ("b",), ("a",)]


def test_everything_serves_all_that_waits_in_one_step() -> None:
    assert three(Everything(), {"a": [0, 0], "b": [0], "c": [0.5]}) == [("a", "b"), ("c",)]


def test_names_make_policies() -> None:
    assert isinstance(create("everything"), Everything)
    assert create("fcfs(5)").rows == 5  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="did you mean 'fcfs'"):
        create("fcf")
    with pytest.raises(UserError, match="policy everything: 1 argument is too many: it takes none"):
        create("everything(3)")


def test_ratio_policies_can_run_sets() -> None:
    policy = create("fas-mcq(0.5) + set")
    assert isinstance(policy, FreshnessAware)
    assert policy.beta == 0.5
    assert isinstance(policy.steps, SetStep)
    with pytest.raises(UserError, match=r"only policies that rank by a ratio.*\(rb-mcq, fas-mcq\)"):
        create("rr+set")
    with pytest.raises(UserError, match="beta must be a number from 0 to 1, not 2"):
        create("fas-mcq(2)")
