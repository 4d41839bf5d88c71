"""Superboxes of overlapping graphs: top-k spanners, and superboxes by the curves of their roots (CAR §6.3)."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.model import Curve, Promises
from freshet.policies import create
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.world import SimulatedQuery, World

TIGHT, LOOSE = Curve.deadline(5.0), Curve.deadline(50.0)


def overlapping() -> list[SimulatedQuery]:
    """Two queries that share their first box, one that joins, one apart."""
    shared, box = Profile(0.002, 0.5), Profile(0.001)
    return [
        SimulatedQuery(
            "tight",
            {"first": shared, "for_tight": box},
            {"first": ("s",), "for_tight": ("first",)},
            Promises(curve=TIGHT),
        ),
        SimulatedQuery(
            "loose",
            {"first": shared, "for_loose": box},
            {"first": ("s",), "for_loose": ("first",)},
            Promises(curve=LOOSE),
        ),
        SimulatedQuery(
            "pairs", {"a": box, "b": box, "u": box}, {"a": ("s",), "b": ("t",), "u": ("a", "b")}, Promises(curve=LOOSE)
        ),
    ]


@pytest.mark.parametrize("policy", ["top-k-spanner(1)", "top-k-spanner(9)", "superbox-slope-slack", "everything"])
def test_all_tuples_come_out_whatever_the_superboxes(policy: str) -> None:
    streams = {"s": np.linspace(0.0, 4.0, 400), "t": np.linspace(0.0, 4.0, 200)}
    world = World(streams, overlapping(), create(policy), overhead=0.001)
    world.run()
    counts = {name: query["tuples_out"] for name, query in world.engine.snapshot()["queries"].items()}
    assert counts["tight"] == counts["loose"] > 100
    assert counts["pairs"] == 600


def waiting(view: RecordView, *numbers: int) -> None:
    for number in numbers:
        view.operators[number].pending, view.operators[number].head_arrival = 1, 0.0
        view.ready[number] = None


def test_a_spanner_of_all_boxes_is_the_query_tree() -> None:
    view = RecordView.over({4: (2,), 5: (3,), 3: (2,), 2: (1,), 6: (1,), 1: (), 0: ()})
    for operator in view.operators:
        operator.promises = Promises(curve=LOOSE)
    waiting(view, 4, 5, 6)
    (step,) = create("top-k-spanner(6)").decide(view).steps
    assert set(step.nodes) == {1, 2, 3, 4, 5, 6}


def test_a_spanner_leaves_out_the_boxes_that_are_not_urgent() -> None:
    view = RecordView()
    first = view.add("urgent", [(0.01, 1.0)] * 3, Promises(curve=TIGHT))
    view.add("other", [(0.01, 1.0)] * 3, Promises(curve=LOOSE))
    waiting(view, 1, 3)
    (step,) = create("top-k-spanner(2)").decide(view).steps
    assert step.nodes == first[1:]


def test_the_urgent_superbox_is_first_and_its_feeder_before_it() -> None:
    view = RecordView.over({0: (1, 2), 1: (), 2: (), 3: ()})
    for number, curve in enumerate((LOOSE, LOOSE, TIGHT, LOOSE)):
        view.operators[number].promises = Promises(curve=curve)
    waiting(view, 1, 2, 3)
    assert create("superbox-slope-slack(4)").decide(view).steps[0].nodes == (2,)
    waiting(view, 0)
    assert [step.nodes for step in create("superbox-slope-slack(4)").decide(view).steps][:2] == [(0,), (2,)]
