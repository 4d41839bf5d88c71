"""Buffering of joins by ordered keys: leading inputs rest in their logs, rows come in the order of the key, and no way
of buffering changes which rows come."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from freshet import App
from freshet.app.reports.joins import joins_of
from freshet.cli.explaining.keys import explain_keys
from freshet.log import Retention
from freshet.model import Promises, UserError
from freshet.model.join_buffer import JoinBuffer
from freshet.quality import OperatorStatistics
from freshet.testing import LocalRun, Push, answers, assert_same, check_invariant

Row = dict[str, Any]
TWO = "SELECT a.epoch, a.n, b.n AS m FROM a, b WHERE a.epoch = b.epoch"
LEFT = "SELECT a.epoch, a.n, b.n AS m FROM a LEFT JOIN b ON a.epoch = b.epoch AND a.v = b.v"
ITSELF = "SELECT x.epoch, x.n, y.n AS m FROM a x, a y WHERE x.epoch = y.epoch"
THREE = "SELECT a.epoch, a.n, b.n AS m, c.n AS k FROM a, b, c WHERE a.epoch = b.epoch AND b.epoch = c.epoch"
CHAIN = (
    "SELECT x.epoch, x.n, c.n AS k FROM (SELECT a.epoch, a.n FROM a, b WHERE a.epoch = b.epoch) x "
    "LEFT JOIN c ON x.epoch = c.epoch"
)
MODES = ("ram", "log", "sorted", "hybrid")


def application(sql: str = TWO, buffer: Any = "auto", disorder: str = "4 rows", **more: Any) -> App:
    app = App("sensors")
    for name in "abc":
        app.stream(name, "epoch int, v int, n int", ordered_by="epoch", disorder=disorder)
    app.query("q", sql, join_buffer=buffer, **more)
    return app


def script(seed: int, pushes: int = 24) -> list[Push]:
    """Streams that lead and lag in turns, a little out of order, with some stragglers."""
    random = np.random.default_rng(seed)
    at, done, name = dict.fromkeys("abc", 0), list[Push](), "a"
    for number in range(pushes):
        name = "abc"[int(random.integers(3))] if random.random() < 0.5 else name
        rows = int(random.integers(1, 12))
        keys = np.maximum(0, at[name] + np.arange(rows) // 2 - random.integers(0, 3, rows))
        keys[random.random(rows) < 0.05] //= 3
        values = random.integers(0, 2, rows).tolist()
        drawn = enumerate(zip(keys.tolist(), values, strict=True))
        done.append(Push(name, [{"epoch": key, "v": v, "n": number * 100 + n} for n, (key, v) in drawn]))
        at[name] += rows // 2
    return done


@pytest.mark.parametrize("sql", [TWO, LEFT, ITSELF, THREE, CHAIN], ids=["two", "left", "itself", "three", "chain"])
def test_no_way_of_buffering_changes_the_rows(sql: str) -> None:
    pushes = script(3)
    expected = answers(application(sql, "ram"), pushes)["q"]
    assert len(expected) > 20
    for buffer in MODES[1:]:
        assert_same(answers(application(sql, buffer), pushes)["q"], expected)


@pytest.mark.parametrize("buffer", ["log", "sorted", "hybrid"])
@pytest.mark.parametrize("sql", [TWO, LEFT, THREE, CHAIN], ids=["two", "left", "three", "chain"])
def test_trains_crashes_and_policies_change_nothing(sql: str, buffer: JoinBuffer) -> None:
    check_invariant(application(sql, buffer), script(5, 14), cases=3)


@pytest.mark.parametrize("buffer", ["log", "hybrid"])
def test_a_bound_on_memory_and_a_resting_cursor_go_together(buffer: JoinBuffer) -> None:
    some = [push for push in script(7, 40) if push.stream != "c"]
    pushes = [Push(push.stream, [{**row, "t": "x" * 900} for row in push.rows]) for push in some]

    def bounded(mode: JoinBuffer) -> App:
        app = App("sensors")
        for name in "ab":
            app.stream(name, "epoch int, v int, n int, t string", ordered_by="epoch", disorder="4 rows")
        app.query("q", TWO.replace("a.n", "a.n, a.t, b.t AS u"), join_buffer=mode, join_memory="64 KiB")
        return app

    check_invariant(bounded(buffer), pushes, cases=3)


def lead(run: LocalRun, rows: int = 400) -> None:
    """Stream a runs far ahead of b."""
    run.push("a", [{"epoch": n, "v": 0, "n": n} for n in range(rows)])
    run.drain()


def held(run: LocalRun) -> list[int]:
    [fold] = run.engine.board.folds()
    return run.engine.time.rows_by_port(fold)


def test_the_cursor_of_a_leading_input_rests_and_does_not_count_as_waiting() -> None:
    with LocalRun(application(buffer="log")) as run, LocalRun(application(buffer="ram")) as other:
        for each in (run, other):
            for first in range(0, 400, 10):
                each.push("a", [{"epoch": n, "v": 0, "n": n} for n in range(first, first + 10)])
            each.push("b", [{"epoch": n, "v": 0, "n": n} for n in range(10)])
            each.drain()
        assert held(other) == [400 - 6, 0], "b's mark is 5"
        assert held(run) == [20 - 6, 0], "a's mark passes 9 with its second batch"
        [edge] = [each for each in run.engine.board.readers["a"] if each.by_key]
        assert (edge.cursor, edge.waiting, run.log.end("a")) == (20, 0, 400)
        assert run.engine.is_idle()
        assert run.engine.board.pending == 0
        for each in (run, other):
            assert_same(each.rows("q"), [{"epoch": n, "n": n, "m": n} for n in range(10)])
        run.push("b", [{"epoch": 55, "v": 0, "n": 55}])
        run.drain()
        assert edge.cursor == 60, "it goes on as far as the others have come"
        assert run.rows("q")[-1] == {"epoch": 55, "n": 55, "m": 55}


def test_resting_delays_no_row() -> None:
    """After each push, what has come is what comes if all is in memory."""
    with LocalRun(application(THREE, "log")) as run, LocalRun(application(THREE, "ram")) as other:
        for push in script(11, 60):
            for each in (run, other):
                each.push(push.stream, push.rows)
                each.drain()
            assert_same(run.rows("q"), other.rows("q"))


def test_resting_goes_on_after_a_crash() -> None:
    with LocalRun(application(buffer="log")) as run:
        lead(run)
        run.push("b", [{"epoch": 3, "v": 0, "n": 3}])
        run.crash()
        run.push("b", [{"epoch": 300, "v": 0, "n": 1}])
        run.drain()
        assert run.rows("q") == [{"epoch": 3, "n": 3, "m": 3}, {"epoch": 300, "n": 300, "m": 1}]


def test_time_that_tuples_rest_is_no_delay() -> None:
    """Policies and meters count from when they were let on."""
    with LocalRun(application(buffer="log")) as run:
        run.push("a", [{"epoch": n, "v": 0, "n": n} for n in range(50)])
        run.push("a", [{"epoch": n, "v": 0, "n": n} for n in range(50, 100)], at=run.clock.now())
        run.drain()
        run.clock.wait(run.clock.now() + 1000.0)
        run.push("b", [{"epoch": 20, "v": 0, "n": 1}], at=run.clock.now())
        run.engine._take_arrivals()
        [edge] = [each for each in run.engine.board.readers["a"] if each.by_key]
        assert edge.waiting == 50
        assert edge.head_arrival >= run.clock.now() - 1.0


def test_a_stream_that_another_query_needs_at_once_does_not_rest() -> None:
    app = application(buffer="log")
    app.query("p", TWO, join_buffer="ram")
    with LocalRun(app) as run:
        run.push("a", [{"epoch": n, "v": 0, "n": n} for n in range(100)])
        run.drain()
        ends = {edge.end for edge in run.engine.board.readers["a"] if edge.by_key}
        assert ends in ({0, 100}, {100})


@pytest.mark.parametrize("buffer", ["sorted", "hybrid"])
@pytest.mark.parametrize("sql", [TWO, LEFT, THREE], ids=["two", "left", "three"])
def test_rows_come_in_the_order_of_the_key(sql: str, buffer: str) -> None:
    app, pushes = application(sql, buffer), script(13, 40)
    orders = []
    for rows in (3, 1000):
        with LocalRun(app, max_train_rows=rows) as run:
            for push in pushes:
                run.push(push.stream, push.rows)
                run.drain()
            run.close_windows()
            run.drain()
            orders.append([tuple(row.values()) for row in run.rows("q")])
    keys = [row[0] for row in orders[0]]
    assert len(keys) > 30
    assert keys == sorted(keys)
    assert orders[0] == orders[1], "rows with equal keys, too, come in an order that the log alone decides"


def test_sorted_rows_wait_for_the_marks() -> None:
    with LocalRun(application(buffer="sorted")) as run:
        for name in "ab":
            run.push(name, [{"epoch": n, "v": 0, "n": n} for n in (0, 2, 1, 3)])
        run.drain()
        assert run.rows("q") == []
        for name in "ab":
            run.push(name, [{"epoch": n, "v": 0, "n": n} for n in (4, 5, 6)])
        run.drain()
        assert [row["epoch"] for row in run.rows("q")] == [0, 1, 2]
        assert held(run) == [4, 4]


def test_auto_rests_where_the_lead_lasts_long_enough() -> None:
    with LocalRun(application(buffer="auto")) as run:
        now = run.clock.now()
        for number in range(10):
            run.push("a", [{"epoch": 10 * number + n, "v": 0, "n": n} for n in range(10)], at=now + number)
        run.push("b", [{"epoch": 3, "v": 0, "n": 3}], at=now + 10)
        run.drain()
        [edge] = [each for each in run.engine.board.readers["a"] if each.by_key]
        assert run.engine.resting.rows(edge) == 90
    with LocalRun(application(buffer="auto")) as run:
        for number in range(10):
            run.push("a", [{"epoch": 10 * number + n, "v": 0, "n": n} for n in range(10)])
        run.push("b", [{"epoch": 3, "v": 0, "n": 3}])
        run.drain()
        assert held(run)[0] > 90, "all of it came at once"


def resting_with(**promises: Any) -> int:
    """Number of tuples that rest with ``auto`` where the lead lasts 4,000 s and has 4,000 tuples, which take 40 ms."""
    with LocalRun(application(buffer="auto", **promises)) as run:
        now = run.clock.now()
        for number in range(40):
            rows = [{"epoch": 100 * number + n, "v": 0, "n": n} for n in range(100)]
            run.push("a", rows, at=now + 100 * number)
        run.push("b", [{"epoch": 3, "v": 0, "n": 3}], at=now + 4000)
        edges = [each for each in run.engine.board.readers["a"] if each.by_key]
        for operator in run.engine.board.operators:
            operator.statistics = OperatorStatistics.given(5e-6, 1.0)
        run.engine._take_arrivals()
        return run.engine.resting.rows(edges[0])


@pytest.mark.parametrize(
    ("promises", "least", "most"),
    [
        ({}, 3_700, 4_000),
        ({"curve": [[0, 1.0], ["1 min", 1.0], ["2 min", 0.0]]}, 3_700, 4_000),
        ({"curve": [[0, 1.0], ["40 ms", 1.0], ["2 min", 0.0]]}, 100, 2_000),
        ({"curve": [[0, 1.0], ["40 ms", 0.0]]}, 100, 2_000),
        ({"expect": {"latency": [[0, "2 min"], ["10 s", "40 ms"]]}}, 100, 2_000),
        ({"expect": {"latency": 1e-6}}, 0, 0),
    ],
    ids=["nothing", "loose", "curve", "falling", "expectation", "none"],
)
def test_auto_rests_only_with_what_the_promise_bears(promises: Any, least: int, most: int) -> None:
    assert least <= resting_with(**promises) <= most


def test_auto_goes_by_the_promise_of_the_moment() -> None:
    with LocalRun(application(buffer="auto")) as run:
        run.engine.set_promises("q", Promises(validity=1e-6))
        now = run.clock.now()
        for number in range(10):
            run.push("a", [{"epoch": 10 * number + n, "v": 0, "n": n} for n in range(10)], at=now + 100 * number)
        run.push("b", [{"epoch": 3, "v": 0, "n": 3}], at=now + 1000)
        run.drain()
        [edge] = [each for each in run.engine.board.readers["a"] if each.by_key]
        assert run.engine.resting.rows(edge) == 0
        assert held(run)[0] > 90


LATE_AFTER_2_S = {"curve": [(0, 1.0), (2, 1.0), (4, 0.0)]}


@pytest.mark.parametrize(
    ("buffer", "more", "told"),
    [
        ("auto", {}, "if the lead lasts 3 times as long as a step. Rows do not wait for their order"),
        ("auto", LATE_AFTER_2_S, "as many as are worked off in 50% of the 2 s that the query tolerates. Rows"),
        ("auto", {"join_memory": "1 MiB"}, "in its log, since what its memory cannot hold would be let go. Rows"),
        ("sorted", LATE_AFTER_2_S, "It may come later than the 2 s that the query tolerates"),
    ],
)
def test_explain_says_why_a_join_buffers_so(buffer: str, more: Any, told: str) -> None:
    app = application(buffer=buffer, **more)
    with LocalRun(app) as run:
        assert told in "\n".join(explain_keys(run.queries["q"], app.streams, run.folder))


def test_explain_and_report_tell_what_rests_and_what_each_way_needs() -> None:
    app = application(buffer="log", join_memory="1 MiB")
    with LocalRun(app) as run:
        for first in range(0, 400, 10):
            run.push("a", [{"epoch": n, "v": 0, "n": n} for n in range(first, first + 10)])
        run.push("b", [{"epoch": n, "v": 0, "n": n} for n in range(10)])
        run.drain()
        streams = {name: spec.stream for name, spec in app.streams.items()}
        left, right = joins_of(run.engine, run.log, streams)["q"]["inputs"]
        told = "\n".join(explain_keys(run.queries["q"], app.streams, run.folder))
        needed = run.log.remembered_bytes("q.join_1")
    assert (left["buffer"], left["rows_resting"], right["rows_resting"]) == ("log", 384, 0)
    assert 10 == left["rows_held"] <= left["rows_predicted"] <= 10 + 394 // 32, "heights are rounded by a 32nd"
    assert "q.join_1 buffers as join_buffer = log says: tuples of a leading stream wait in its log" in told
    needs = dict(re.findall(r"(ram|log|sorted|hybrid) ([0-9.]+) KB", told))
    assert float(needs["log"]) < float(needs["ram"]) / 10
    assert needed is not None
    assert f"now it needs at most {needs['log']} KB" in told


def test_the_prediction_for_a_join_that_reads_a_join() -> None:
    app = application(CHAIN, "ram")
    with LocalRun(app) as run:
        for name in "ab":
            run.push(name, [{"epoch": n, "v": 0, "n": n} for n in range(100)])
        run.push("c", [{"epoch": n, "v": 0, "n": n} for n in range(20)])
        run.drain()
        streams = {name: spec.stream for name, spec in app.streams.items()}
        both, single = joins_of(run.engine, run.log, streams)["q"]["inputs"][-2:]
    assert (both["streams"], single["streams"]) == (["a", "b"], ["c"])
    assert both["rows_held"] >= 84, "c's mark is 15"
    assert 0.9 * 84 <= both["rows_predicted"] <= 1.2 * 84


@pytest.mark.parametrize(
    ("sql", "buffer", "why"),
    [
        (TWO, "disk", "query q: join_buffer must be 'auto' or 'ram' or 'sorted' or 'log' or 'hybrid', not 'disk'"),
        ("SELECT n FROM a", "log", "join_buffer is for joins by ordered keys, and this query has none"),
    ],
)
def test_bad_input(sql: str, buffer: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        application(sql, buffer).check()


def test_auto_holds_no_source_back() -> None:
    """What rests because it seems to pay rests only within the bound of its stream."""
    app = App("sensors")
    for name in "ab":
        bound = Retention(bound_bytes=20_000)
        app.stream(name, "epoch int, t string", ordered_by="epoch", disorder="4 rows", retention=bound)
    app.query("q", "SELECT a.epoch, a.t FROM a, b WHERE a.epoch = b.epoch")
    with LocalRun(app) as run:
        now = run.clock.now()
        run.push("b", [{"epoch": 0, "t": ""}], at=now)
        for number in range(100):
            run.push("a", [{"epoch": 5 * number + n, "t": "x" * 100} for n in range(5)], at=now + number)
            run.drain()
            [edge] = [each for each in run.engine.board.readers["a"] if each.by_key]
            assert run.log.bytes("a", edge.end, run.log.end("a")) <= 20_000
        assert 0 < run.engine.resting.rows(edge) < 400
        assert not run.queues.held()
