"""Windows, joins and aggregates in the engine: what is due, what is told, what survives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.kit import Application

from freshet.engine.fold_states import MOST_PIECES
from freshet.engine.states import EdgeState
from freshet.engine.timekeeper import Moment
from freshet.model import Unit, state_stream
from freshet.policies import Everything, FirstComeFirstServed, FreshnessAware, Policy, RateBased, RoundRobin, create
from freshet.testing import Faults, InProcessExecutor, OneBox

TUMBLING = {"q": "SELECT k, count(*) AS n, window_end FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k"}
PAIRS = {
    "j": "SELECT s.ts AS ts, s.k AS k, s.v AS a, t.v AS b FROM s [RANGE 5 SECOND] JOIN t [RANGE 5 SECOND] ON s.k = t.k"
}
MAYBE = {"l": PAIRS["j"].replace(" JOIN ", " LEFT JOIN ")}


def counts(app: Application, query: str = "q") -> list[tuple[Any, ...]]:
    return [(k, n, int(end.timestamp())) for k, n, end in app.tuples(query)]


@pytest.mark.parametrize(
    "policy", [Everything(), RoundRobin(), FirstComeFirstServed(), RateBased(), FreshnessAware(), OneBox()]
)
def test_an_idle_stream_closes_its_windows(start: Any, policy: Policy) -> None:
    app = start(TUMBLING, policy)
    app.append("s", [(1, "a", 1), (2, "a", 1), (3, "b", 1), (11, "a", 1)])
    app.run()
    assert counts(app) == []
    assert sum(app.states().values()) > 0
    app.heartbeat("s", 11.9)
    app.run()
    assert counts(app) == []
    app.heartbeat("s", 12)  # the lateness is 2 s
    app.run()
    assert sorted(counts(app)) == [("a", 2, 10), ("b", 1, 10)]
    app.heartbeat("s", 100)
    app.run()
    assert sorted(counts(app)) == [("a", 1, 20), ("a", 2, 10), ("b", 1, 10)]
    assert sum(app.states().values()) == 0


def test_an_idle_stream_holds_up_windows_over_both_but_no_inner_join(start: Any) -> None:
    both = "SELECT ts, k FROM s UNION ALL SELECT ts, k FROM t"
    window = "[RANGE 10 SECONDS SLIDE 10 SECONDS]"
    app = start(PAIRS | MAYBE | {"q": f"SELECT k, count(*) AS n, window_end FROM ({both}) {window} GROUP BY k"})
    app.append("t", [(1, "a", 9)])
    remembered = []
    for second in range(0, 60, 2):
        app.append("s", [(second, "ab"[second % 4 // 2], second)])
        app.run()
        remembered.append(sum(app.states().values()))
    assert sorted(row[2] for row in app.tuples("j")) == [0, 4]
    assert sorted(row[2] for row in app.tuples("l")) == [0, 4]
    assert counts(app) == []
    assert remembered == sorted(remembered)
    app.heartbeat("t", 100)
    app.run()
    # Up to 56 s, as the lateness of the stream that goes on is 2 s.
    assert {end: {k: n for k, n, at in counts(app) if at == end} for _, _, end in counts(app)} == {
        10: {"a": 4, "b": 2},
        20: {"a": 2, "b": 3},
        30: {"a": 3, "b": 2},
        40: {"a": 2, "b": 3},
        50: {"a": 3, "b": 2},
    }
    assert len(app.tuples("l")) > 20
    assert sum(app.states().values()) < remembered[-1] / 2


def test_draining_closes_no_window_that_event_time_has_not_passed(start: Any) -> None:
    app = start(TUMBLING)
    app.append("s", [(1, "a", 1)])
    app.engine.stop(drain=True)
    app.engine.run()
    assert counts(app) == []


def test_where_nothing_is_due_no_unit_runs(start: Any) -> None:
    app = start(TUMBLING)
    app.append("s", [(3, "a", 1)])
    app.run()
    units = app.engine.snapshot()["workers"]["units"]
    for second in range(4, 12):
        app.heartbeat("s", second)
        app.run()
    assert app.engine.snapshot()["workers"]["units"] == units
    app.heartbeat("s", 12)
    app.run()
    assert app.engine.snapshot()["workers"]["units"] == units + 1
    app.heartbeat("s", 100)  # the state is empty
    app.run()
    assert app.engine.snapshot()["workers"]["units"] == units + 1


def test_a_window_that_was_due_before_a_crash_closes_after_it(start: Any) -> None:
    app = start(TUMBLING)
    app.append("s", [(1, "a", 1)])
    app.run()
    app.heartbeat("s", 50)
    for _ in range(2):
        app.crash()
        app.run()
        assert counts(app) == [("a", 1, 10)]


def test_a_left_tuple_without_a_partner_waits_for_the_other_stream(start: Any) -> None:
    app = start(MAYBE)
    app.append("s", [(1, "a", 1)])
    app.heartbeat("s", 100)
    app.run()
    assert app.tuples("l") == []
    app.append("t", [(4, "b", 2)])
    app.heartbeat("t", 7)
    app.run()
    assert app.tuples("l") == []
    app.heartbeat("t", 8)
    app.run()
    assert [row[2:] for row in app.tuples("l")] == [(1, None)]


def test_chains_of_a_fold_in_one_unit_see_each_other(start: Any) -> None:
    app = start(MAYBE)
    app.append("s", [(1, "a", 1)])
    app.append("t", [(2, "a", 2), (90, "x", 0)])
    app.heartbeat("t", 100)
    app.run()
    assert app.engine.snapshot()["workers"]["units"] == 1
    assert [row[2:] for row in app.tuples("l")] == [(1, 2)]


class Watching(InProcessExecutor):
    """Sees that no fold runs in two units at once."""

    most = 0

    def submit(self, unit: Unit) -> None:
        running = {state.fold for result in self._done for state in result.unit.states}
        assert running.isdisjoint(state.fold for state in unit.states)
        super().submit(unit)
        self.most = max(self.most, len(self._done))


def test_two_units_never_run_the_same_fold(start: Any) -> None:
    app = start(PAIRS | {"p": TUMBLING["q"]}, RoundRobin(rows=1), slots=3)
    app.executor.__class__ = Watching
    for second in range(12):
        app.append("s", [(second, "a", second)])
        app.append("t", [(second, "a", second)])
    app.run()
    assert app.executor.most > 1
    assert len(app.tuples("j")) == sum(abs(one - two) < 5 for one in range(12) for two in range(12))


def test_watermarks_pass_through_queries_to_queries(start: Any) -> None:
    app = start(
        {
            "small": "SELECT ts, k FROM s WHERE v < 3",
            "smaller": "SELECT ts, k FROM small WHERE k <> 'x'",
            "q": TUMBLING["q"].replace("FROM s", "FROM smaller"),
        }
    )
    app.append("s", [(1, "a", 1), (2, "a", 7)])
    app.run()
    app.append("s", [(50, "a", 7)])  # nothing of it comes through, but its time does
    app.run()
    assert counts(app) == [("a", 1, 10)]
    assert app.log.watermark("small") == app.log.watermark("smaller") == 48_000_000


IDLE = {
    "panes": "SELECT k, count(*) AS n, window_end AS ts FROM s [RANGE 2 s SLIDE 2 s] WHERE v > 5 GROUP BY k",
    "left": "SELECT s.ts AS ts, s.k AS k FROM s [RANGE 2 s] LEFT JOIN t [RANGE 2 s] ON s.k = t.k WHERE s.v > 5",
}


@pytest.mark.parametrize("kind", IDLE)
def test_a_fold_that_remembers_nothing_keeps_nobody_waiting(start: Any, kind: str) -> None:
    both = "SELECT k, count(*) AS n, window_end FROM (SELECT ts, k FROM idle UNION ALL SELECT ts, k FROM u)"
    app = start({"idle": IDLE[kind], "q": f"{both} [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k"})
    for name in "stu":
        app.append(name, [(1, "a", 1)])
    app.run()
    for name in "stu":
        app.heartbeat(name, 30)
    app.run()
    assert app.tuples("idle") == []
    assert counts(app) == [("a", 1, 10)]


@pytest.mark.parametrize("policy", ["baat", "taat", "everything"])
def test_a_left_tuple_without_a_partner_is_waited_for_by_those_behind(start: Any, policy: str) -> None:
    text = "SELECT s.ts AS ts, s.k AS k FROM s [RANGE 1 SECOND] LEFT JOIN t [RANGE 1 SECOND] ON s.k = t.k"
    pairs = "SELECT a.k AS k FROM l [RANGE 2 SECONDS] AS a JOIN l [RANGE 2 SECONDS] AS b ON a.k = b.k"
    app = start({"l": text, "p": pairs}, create(policy))
    app.append("s", [(1, "a", 1), (7, "b", 1)])
    app.run()
    for stream in "st":
        app.heartbeat(stream, 1000)
    app.run()
    assert sorted(app.tuples("p")) == [("a",), ("b",)]


def test_nobody_is_told_who_does_not_want_to_know(start: Any) -> None:
    app = start({"small": "SELECT ts, k FROM s WHERE v < 3"})
    app.append("s", [(1, "a", 1)])
    app.heartbeat("s", 50)
    app.run()
    assert app.log.watermark("small") is None


def test_the_watermark_of_a_join_is_on_the_time_that_its_output_carries(start: Any) -> None:
    app = start(PAIRS | {"q": TUMBLING["q"].replace("FROM s", "FROM j")})
    app.append("s", [(1, "a", 1)])
    app.append("t", [(3, "a", 2)])
    app.heartbeat("s", 42)
    app.heartbeat("t", 22)
    app.run()
    assert app.log.watermark("j") == 15_000_000  # min(40, 20 - 5)
    assert counts(app) == [("a", 1, 10)]


def test_a_queue_inside_keeps_event_time_back(start: Any) -> None:
    app = start({"q": TUMBLING["q"].replace("GROUP BY", "WHERE v > 0 GROUP BY")}, OneBox())
    app.append("s", [(1, "a", 1), (60, "a", 1)])
    app.turn()  # the first operator runs
    app.turn()
    board = app.engine.board
    [queue] = board.operators[1].edges
    assert queue.waiting or queue.in_flight
    assert Moment(board, app.queues, app.engine.time.remembered).behind(board.operators[board.queries[0].root]) is None
    app.run()
    assert counts(app) == [("a", 1, 10)]


def test_a_query_that_raises_leaves_its_state_as_it_was(start: Any) -> None:
    faults = Faults()
    app = start(TUMBLING | {"r": TUMBLING["q"]}, faults=faults)
    app.append("s", [(1, "a", 1)])
    app.run()
    before = app.states()
    ends = {stream: app.log.end(stream) for stream in before}
    faults.raise_in("r")
    app.append("s", [(50, "b", 1)])
    app.drain()
    queries = app.engine.snapshot()["queries"]
    assert (queries["r"]["state"], queries["q"]["state"]) == ("quarantined", "active")
    assert counts(app) == [("a", 1, 10)]
    kept = state_stream("r.aggregate", 0)
    assert (app.states()[kept], app.log.end(kept)) == (before[kept], ends[kept])
    assert app.log.readers()[kept].quarantined


def test_a_commit_that_finds_no_room_runs_the_unit_again(start: Any) -> None:
    faults = Faults().fail("commit").fail("commit", nth=2)
    app = start(TUMBLING, faults=faults)
    app.append("s", [(1, "a", 1), (50, "a", 1)])
    app.run()
    assert faults.happened == ["fail at commit 1", "fail at commit 2"]
    assert counts(app) == [("a", 1, 10)]


def test_a_query_that_is_put_back_goes_on_with_its_state(start: Any) -> None:
    app = start(TUMBLING)
    app.append("s", [(1, "a", 1)])
    app.run()
    query = app.engine.board.queries[0].query
    app.engine.drop_query("q")
    state = state_stream("q.aggregate", 0)
    reader = app.log.readers()[state]
    assert (app.log.kind(state), reader.kind, reader.owner, reader.quarantined) == ("state", "state", "q", True)
    app.log.collect()
    app.append("s", [(2, "a", 1), (50, "a", 1)])
    app.log.set_need(state, True)
    app.engine.add_query(query, {"s": app.engine.schemas["s"]})
    app.engine.run()
    assert counts(app) == [("a", 2, 10)]


@pytest.mark.parametrize("others", [1, 12])
def test_a_query_that_comes_looks_at_no_others(start: Any, others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    app = start({f"q{number}": TUMBLING["q"] for number in range(others + 1)})
    app.append("s", [(1, "a", 1), (12, "a", 1)])
    app.run()
    query, before, looked = app.engine.board.queries[0].query, Moment.before, set()
    app.engine.drop_query("q0")

    def look(moment: Moment, edge: EdgeState) -> int | None:
        looked.add(edge.edge.reader)
        return before(moment, edge)

    monkeypatch.setattr(Moment, "before", look)
    app.engine.add_query(query, {"s": app.engine.schemas["s"]})
    assert looked == {"q0.aggregate.input", "q0.aggregate", "q0.project"}


def test_a_query_that_comes_hears_how_far_the_output_is_that_it_reads(start: Any) -> None:
    by_twenty = "SELECT sum(n) AS n FROM q [RANGE 20 SECONDS SLIDE 20 SECONDS]"
    app = start(TUMBLING | {"over": by_twenty})
    query = app.engine.board.queries[1].query
    app.engine.drop_query("over")
    app.append("s", [(1, "a", 1), (12, "a", 1), (50, "a", 1)])
    app.run()
    app.engine.add_query(query, {"q": app.engine.schemas["q"]})
    app.run()
    assert [row[0] for row in app.tuples("over")] == [2]


def test_state_is_metered(start: Any) -> None:
    app = start(PAIRS)
    app.append("s", [(990, "a", 1), (992, "b", 1)])
    app.append("t", [(991, "a", 1)])
    app.run()
    snapshot = app.engine.snapshot()
    meters = snapshot["queries"]["j"]
    assert (meters["state_rows"], meters["state_bytes"] > 0) == (3, True)
    assert meters["watermark_lag_s"] == app.clock.now() - 989.0
    assert (snapshot["total"]["state_rows"], snapshot["total"]["state_bytes"]) == (3, meters["state_bytes"])


def test_kept_states_are_metered(start: Any) -> None:
    app = start(PAIRS | TUMBLING)
    for second in range(20):
        app.append("s", [(second, "a", 1)])
        app.run()
    workers = app.engine.snapshot()["workers"]
    assert workers["states_found"] > workers["states_rebuilt"] >= 2
    assert workers["states_found"] + workers["states_rebuilt"] == 2 * workers["units"]
    assert workers["kept_bytes"] > 0


def test_consumed_state_is_collected(start: Any) -> None:
    app = start(TUMBLING)
    for second in range(0, 400, 10):
        app.append("s", [(second, "a", 1)])
        app.run()
    app.log.collect()
    stream = state_stream("q.aggregate", 0)
    assert app.log.oldest(stream) >= app.log.end(stream) - 2
    assert len(app.log.heartbeats(stream)) <= 3


@pytest.mark.parametrize("queries", [PAIRS, MAYBE], ids=["inner", "left"])
def test_a_state_in_many_small_segments_is_written_anew(start: Any, queries: Any) -> None:
    name, text = next(iter(queries.items()))
    long = text.replace("5 SECOND", "1 HOUR")
    app, whole = start({name: long}), start({name: long})
    left = state_stream(f"{name}.join_1", 0)
    pieces = []
    for second in range(3 * MOST_PIECES):
        for each in (app, whole):
            each.append("s", [(second, "ab"[second % 2], second)])
            if second % 50 == 0:
                each.append("t", [(second, "a", second)])
        app.run()
        low = app.queues.start_reader(left, left, "earliest")
        pieces.append(len(app.queues.train(left, low, app.queues.end(left)).segments))
        if second == 2 * MOST_PIECES:
            app.crash()
    # A unit of its own writes the state anew as soon as there is one piece too many.
    assert max(pieces) == MOST_PIECES
    assert pieces.count(1) == 3
    assert app.states()[left] == 3 * MOST_PIECES
    for each in (app, whole):
        for stream in "st":
            each.heartbeat(stream, 10_000)
        each.run()
    assert app.answers(name) == whole.answers(name)
    assert sum(app.answers(name).values()) >= 4 * MOST_PIECES


def test_a_stream_without_event_time_goes_by_its_arrivals(start: Any) -> None:
    app = start(TUMBLING, event_time=False)
    app.append("s", [(0, "a", 1)], arrival=1_000_000)
    app.append("s", [(0, "a", 1), (0, "b", 1)], arrival=9_000_000)
    app.append("s", [(0, "a", 1)], arrival=12_000_000)
    app.run()
    assert sorted(counts(app)) == [("a", 2, 10), ("b", 1, 10)]
    app.heartbeat("s", 20)
    app.run()
    assert sorted(counts(app)) == [("a", 1, 20), ("a", 2, 10), ("b", 1, 10)]
