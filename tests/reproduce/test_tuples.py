"""The testbed of WU §4.9, and one of its claims with one seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.policies import FirstComeFirstServed
from freshet.reproduce import Trial, claims
from freshet.reproduce.tuples.runs import STRATEGIES, TupleRun, simulate
from freshet.simulation.fast import FastWorld
from freshet.simulation.workloads.tuples import TupleWorkload

SMALL = TupleWorkload(queries=6, operators=10, seconds=20.0, process="poisson")


def test_queries_are_made_from_the_answers_up_to_the_streams() -> None:
    for seed in range(20):
        bed = replace(SMALL, queries=20, operators=48, seed=seed)
        queries = bed.queries_of()
        assert len({name for query in queries for name in query.operators}) == 48
        assert all(len(query.streams) == 1 and query.root == f"o{place}" for place, query in enumerate(queries))
        assert all(0.1 <= query.promises.weight <= 1.0 for query in queries)


def test_the_load_is_the_work_that_comes_per_second() -> None:
    bed = replace(SMALL, load=0.5, seconds=200.0)
    world = FastWorld(bed.streams_of(), bed.queries_of(), FirstComeFirstServed(), seed=bed.seed)
    world.run()
    assert world.work.processing / bed.seconds == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize("changes", [{}, {"process": "b-model", "delay": 1.0}, {"process": "b-model", "span": 2.0}])
def test_what_is_due_is_what_everything_would_answer(changes: dict[str, object]) -> None:
    bed = replace(SMALL, **changes)  # type: ignore[arg-type]
    world = FastWorld(
        bed.streams_of(), bed.queries_of(), FirstComeFirstServed(), seed=bed.seed, validity=bed.validity_of(),
        created=bed.created_of(),
    )  # fmt: skip
    world.run()
    counts = {name: int(np.count_nonzero(due <= bed.seconds)) for name, (due, _) in world.due().items()}
    assert counts == bed.due()


def test_without_load_everything_is_in_time() -> None:
    for name in (*STRATEGIES, "tuple-auto", "rr"):
        assert simulate(TupleRun(replace(SMALL, load=0.05), name)).score == 1.0, name


def test_a_simulation_repeats_exactly() -> None:
    run = TupleRun(SMALL, "opt-profit-pd", 0.8)
    assert simulate(run) == simulate(run)


def test_a_score_is_far_above_what_no_online_scheduler_can_promise_to_exceed() -> None:
    found = simulate(TupleRun(SMALL, "opt-profit-pd"))
    assert 0.0 < found.bound < 0.25 < found.score


def test_fragments_are_better_than_boxes() -> None:
    (found,) = [each for each in claims("tuples") if each.id == "tuples.fig4.9.opt-profit-gains"]
    assert found.check(Trial(quick=True, seeds=1))["ok"]
