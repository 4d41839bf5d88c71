"""The sampler on the driver: a query's own kernels over some tuples of its windows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from freshet import App
from freshet.engine.periodic.window_sampler import WindowSampler
from freshet.model import InstanceView
from freshet.quality.periodic import Sampled
from freshet.quality.periodic.profiled import planned_operators
from freshet.testing import LocalRun
from freshet.testing.local_run import START

QUERIES = {
    "pairs": "SELECT s.k, v, w FROM s [RANGE 4 s], t [RANGE 4 s] WHERE s.k = t.k AND v <> w AND v > 1 PERIOD 4 s",
    "known": "SELECT count(*) AS n, avg(v) AS mean FROM s [RANGE 4 s] JOIN names ON s.k = names.k PERIOD 4 s",
    "few": "SELECT k, v FROM s [RANGE 4 s] WHERE v = 3 PERIOD 4 s",
}


@contextmanager
def released() -> Iterator[tuple[LocalRun, dict[str, InstanceView]]]:
    """A run whose instances were released and wait, over 4 s of tuples in several segments."""
    app, rng = App("p"), random.Random(1)
    app.stream("s", "k int, v int")
    app.stream("t", "k int, w int")
    app.table("names", "names.csv", schema="k int")
    for name, text in QUERIES.items():
        app.query(name, text)
    with LocalRun(app, tables={"names": [{"k": number} for number in range(20)]}) as run:
        for number in range(20):
            at = START + number * 0.19
            for stream, column in (("s", "v"), ("t", "w")):
                run.push(stream, [{"k": rng.randrange(100), column: rng.randrange(5)} for _ in range(200)], at=at)
        run.heartbeat("s", START + 4.0)
        run.engine._take_arrivals()
        run.engine._take_releases()
        yield run, {each.key[0]: each for each in run.engine.board.instances}


def sampled(run: LocalRun, instance: InstanceView, share: float) -> tuple[Sampled, Mapping[str, str]]:
    board = run.engine.board
    sampler = WindowSampler(board.network, run.engine.log, run.log.folder)
    sizes = {each.name: round(8000 * share) for each in planned_operators(board, instance)}
    found = sampler.sample(board, instance, sizes)
    assert found is not None
    return found, {str(number): board.operators[number].kind for number in board.queries[instance.query].operators}


@pytest.mark.parametrize("name", QUERIES)
def test_a_sample_of_everything_says_what_the_instance_then_does(name: str) -> None:
    with released() as (run, instances):
        found, kinds = sampled(run, instances[name], 100.0)
        assert found.seconds > 0.0
        outcomes = []
        run.engine._periodic.answered = lambda view, outcome: outcomes.append(outcome)  # type: ignore[method-assign]
        run.drain()
    did = {
        str(one.operator): (one.rows_in, one.rows_out)
        for outcome in outcomes
        for chain in outcome.chains
        for one in chain.operators
    }
    assert {kinds[each.name] for each in found.runs} >= {{"pairs": "join", "known": "lookup", "few": "filter"}[name]}
    assert "aggregate" not in {kinds[each.name] for each in found.runs}
    for each in found.runs:
        assert (sum(each.rows_in), each.rows_out) == did[each.name], kinds[each.name]


def test_some_tuples_estimate_selectivities() -> None:
    with released() as (run, instances):
        exact, kinds = sampled(run, instances["pairs"], 100.0)
        some, _ = sampled(run, instances["pairs"], 0.25)
    [join, one] = [next(each for each in found.runs if kinds[each.name] == "join") for found in (exact, some)]
    assert sum(one.rows_in) < 0.5 * sum(join.rows_in)
    true, estimated = (run.rows_out / run.rows_in[0] / run.rows_in[1] for run in (join, one))
    assert estimated == pytest.approx(true, rel=0.3)
