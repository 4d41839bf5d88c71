"""How large tuples are in front of operators and behind them, as policies see it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.kit import Application

from freshet.policies import Everything
from freshet.simulation.executor import Profile
from freshet.simulation.fast import FastWorld
from freshet.simulation.world import SimulatedQuery, World


def test_sizes_follow_from_the_types_of_columns() -> None:
    app = Application({"q": "SELECT v FROM s WHERE v > 1"})
    try:
        board = app.engine.board
        query = board.queries[0]
        # With the arrival: 8 bytes for it and for the time, 24 for the text, 4 for the number.
        assert board.operators[query.operators[0]].size_in == 44.0
        assert board.operators[query.root].size_out == 12.0
    finally:
        app.close()


@pytest.mark.parametrize("kind", [World, FastWorld])
def test_simulated_sizes_are_as_declared(kind: type[World] | type[FastWorld]) -> None:
    profiles = {"a": Profile(0.1), "b": Profile(0.1, size=10), "both": Profile(0.1, size=7)}
    query = SimulatedQuery("q", profiles, {"a": ("s",), "b": ("s",), "both": ("a", "b")})
    world = kind({"s": np.zeros(1)}, [query], Everything(), sizes={"s": 30})
    operators = world._view.operators if isinstance(world, FastWorld) else world.engine.board.operators
    assert [(each.size_in, each.size_out) for each in operators] == [(30, 30), (30, 10), (20, 7)]
