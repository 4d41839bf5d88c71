"""Thinned answers are those of a batch over log minus ledger, whatever the schedule, the trains and the crashes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.app import App
from freshet.kernels.keeping import kept_mask
from freshet.model import ARRIVAL, Decision, Keep, Shed, Train, UserError, View
from freshet.policies import Everything
from freshet.testing import Faults, Killed, LocalRun, RandomSteps, assert_same, remaining
from freshet.testing.schedule import make_policy

QUERIES = {
    "plain": "SELECT ts, k, v FROM s WHERE v > 3",
    "joined": "SELECT s.ts, s.k, s.v + t.v AS total FROM s [RANGE 5 SECONDS], t [RANGE 5 SECONDS] WHERE s.k = t.k",
    "sums": "SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k",
    "moving": "SELECT max(v) AS top, count(*) AS n FROM s [ROWS 3]",
}
THIN = ["defer", "thin"]


def application(**options: object) -> App:
    app = App("thinned")
    for stream in ("s", "t"):
        app.stream(stream, "ts timestamp, k string, v int", event_time="ts", lateness="1000 s")
    for name, text in QUERIES.items():
        app.query(name, text, overload=THIN, **options)  # type: ignore[arg-type]
    return app


def rows(seed: int, count: int) -> list[dict[str, object]]:
    draw = random.Random(seed)
    return [
        {"ts": draw.random() * 20, "k": draw.choice("ab"), "v": draw.choice((*range(10), None))} for _ in range(count)
    ]


def batch(run: LocalRun, name: str) -> list[dict[str, object]]:
    """The answers of a query that was never thinned to what the ledger leaves of its inputs."""
    app = application()
    app.queries = {name: app.queries[name]}
    with LocalRun(app) as again:
        for stream, edge in edges(run, name).items():
            left = remaining(run.log, edge, stream)
            again.push(stream, left.drop_columns([ARRIVAL]), at=left[ARRIVAL].to_numpy())
        again.drain()
        again.close_windows()
        again.drain()
        return again.rows(name)


def edges(run: LocalRun, name: str) -> Mapping[str, str]:
    nodes = (run.engine.board.network.nodes[number] for number in run.engine.board.network.of(name))
    return {edge.stream: edge.reader for node in nodes for edge in node.queues if edge.kind == "stream"}


def go(run: LocalRun, work: str, draw: random.Random) -> None:
    while True:
        try:
            getattr(run, work)()
            return
        except Killed:
            run.crash(RandomSteps(draw.randint(0, 99)), draw.randint(0, 99))


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_log_minus_ledger(seed: int) -> None:
    draw = random.Random(seed)
    policy = make_policy(draw.choice(("random-steps", "one-box", "everything", "baat", "random-strategies")), seed)
    options = {"value": "v"} if seed % 3 == 0 else {}
    with LocalRun(
        application(**options),
        policy=policy,
        workers=draw.randint(1, 3),
        max_train_rows=draw.choice((2, 7, 500_000)),
        seed=seed,
        faults=Faults.at_random(seed, draw.choice((0.0, 0.05))),
        resplits=draw.choice((0.0, 0.3)),
    ) as run:
        for piece in range(12):
            run.push(draw.choice("st"), rows(seed * 100 + piece, draw.randint(1, 12)))
            run.thin(draw.choice(list(QUERIES)), draw.choice((0.2, 0.5, 0.8, 1.0)))
            for _ in range(draw.randint(0, 4)):
                go(run, "turn", draw)
            if draw.random() < 0.2:
                run.crash(RandomSteps(seed + piece), seed + piece)
        go(run, "drain", draw)
        run.close_windows()
        go(run, "drain", draw)
        assert not run.stopped
        for name in QUERIES:
            assert_same(run.rows(name), batch(run, name))
        assert any(entry.rows for name in QUERIES for entry in run.missing(name))


def test_entries_of_the_same_rule_are_one_and_the_meters_tell_what_is_missing() -> None:
    with LocalRun(application(), policy="baat", max_train_rows=10) as run:
        for ratio in (0.5, 0.5, 1.0, 0.25):
            run.thin("plain", ratio)
            run.push("s", rows(int(ratio * 100), 200))
            run.drain()
        entries = run.missing("plain")
        assert [(entry.first, entry.end, entry.ratio, entry.rule) for entry in entries] == [
            (0, 400, 0.5, "hash 1"), (600, 800, 0.25, "hash 1"),
        ]  # fmt: skip
        assert {entry.reason for entry in entries} == {"by hand"}
        whole = [kept_mask(Train("s", each.first, each.end, keep=each.keep)).sum() for each in entries]
        assert [entry.rows for entry in entries] == [400 - whole[0], 200 - whole[1]]
        told = run.engine.snapshot()["queries"]
        missing = sum(entry.rows for entry in entries)
        assert told["plain"]["rows_thinned"] == told["plain"]["missing"]["thinned"] == missing
        assert told["plain"]["completeness"] == 1.0 - missing / 800
        assert (told["sums"]["missing"], told["sums"]["completeness"]) == ({}, 1.0)


def test_costs_are_those_of_the_tuples_that_are_kept() -> None:
    with LocalRun(application(), cost=1e-3) as run:
        run.thin("plain", 0.2)
        run.push("s", rows(1, 1000))
        run.drain()
        [entry] = run.missing("plain")
        [first, *_] = run.engine.snapshot()["queries"]["plain"]["operators"].values()
        assert first["tuples_in"] == 1000 - entry.rows < 300
        assert first["cost_s"] == pytest.approx(1e-3)


def test_the_least_go_first_and_null_before_all() -> None:
    app = App("thinned")
    app.stream("s", "v int")
    app.query("q", "SELECT v FROM s", overload=THIN, value="v")
    with LocalRun(app, max_train_rows=1000) as run:
        draw = random.Random(1)
        run.thin("q", 0.3)
        for _ in range(6):
            run.push("s", [{"v": draw.choice((None, *range(10)))} for _ in range(1000)])
            run.drain()
        first, *cut = run.missing("q")
        assert (first.rule, first.end) == ("hash 1", 1000), "nothing was known of the values yet"
        assert len(cut) == 1, "the cut still fits, so one entry stands for all"
        assert 0.25 < 1 - cut[0].rows / 5000 < 0.35
        found = Counter(row["v"] for row in run.rows("q")[1000 - first.rows :])
        came = Counter(row["v"] for row in run.rows("s")[1000:])
        assert set(found) == {6, 7, 8, 9}
        assert all(found[value] == came[value] for value in (7, 8, 9)), "only of the least that are kept some go"
        assert found.total() == 5000 - cut[0].rows


def test_a_query_that_does_not_allow_it_is_not_thinned() -> None:
    app = App("thinned")
    app.stream("s", "v int")
    app.query("q", "SELECT v FROM s")
    with LocalRun(app) as run:
        with pytest.raises(UserError, match=r'query q may not be thinned: .* overload = \["defer", "thin"\]'):
            run.thin("q", 0.5)
        with pytest.raises(UserError, match="no query 'p'"):
            run.engine.shed(Shed("p", 0.5))
        with pytest.raises(UserError, match="above 0 and be at most 1"):
            run.thin("q", 0.0)


@settings(deadline=None)
@given(
    edge=st.text(min_size=1, max_size=9),
    first=st.integers(0, 2**40),
    low=st.floats(0.01, 1.0),
    high=st.floats(0.01, 1.0),
    cut=st.integers(0, 50),
)
def test_what_is_kept_is_nested_and_depends_on_the_offset_alone(
    edge: str, first: int, low: float, high: float, cut: int
) -> None:
    low, high = sorted((low, high))

    def kept(ratio: float, begin: int, end: int) -> np.ndarray:
        return kept_mask(Train("s", begin, end, keep=Keep(ratio, edge)))

    some, more = kept(low, first, first + 50), kept(high, first, first + 50)
    assert (some <= more).all()
    assert (np.concatenate([kept(low, first, first + cut), kept(low, first + cut, first + 50)]) == some).all()


def test_a_query_that_allows_it_no_more_is_not_thinned_any_longer() -> None:
    with LocalRun(application()) as run:
        run.thin("plain", 0.5)
        promises = run.engine.board.queries[run.engine.board.numbers["plain"]].promises
        run.engine.set_promises("plain", replace(promises, overload=("defer",)))
        run.push("s", rows(1, 50))
        run.drain()
        assert run.missing("plain") == []


class Thins(Everything):
    """Thins a query with its first decision."""

    def decide(self, view: View) -> Decision:
        made = super().decide(view)
        return replace(made, actions=(Shed("plain", 0.5, "the policy says so"), *made.actions))


def test_a_decision_may_thin() -> None:
    with LocalRun(application(), policy=Thins()) as run:
        run.push("s", rows(1, 50))
        run.drain()
        [entry] = run.missing("plain")
        assert (entry.first, entry.end, entry.ratio, entry.reason) == (0, 50, 0.5, "the policy says so")


def test_queries_that_may_be_thinned_share_no_operators() -> None:
    app = App("shared", share="always")
    app.stream("s", "v int")
    for name, overload in (("a", ["defer"]), ("b", ["defer"]), ("c", THIN)):
        app.query(name, "SELECT v FROM s WHERE v > 1", overload=overload)
    with LocalRun(app) as run:
        board = run.engine.board
        served = {name: len(board.operators[board.network.of(name)[0]].queries) for name in "abc"}
        assert served == {"a": 2, "b": 2, "c": 1}
        run.thin("c", 0.5)
        run.push("s", [{"v": number} for number in range(100)])
        run.drain()
        assert len(run.rows("a")) == 98 > len(run.rows("c"))
