"""Joins without windows, by ordered keys: the answer is the join of all rows that are above the mark when they come,
whatever the trains, batches, policies, crashes and faults."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshet import App
from freshet.app.reports.joins import joins_of
from freshet.cli.explaining.keys import explain_keys
from freshet.model import KeyOrder, UserError
from freshet.quality.disorder import Disorder
from freshet.testing import LocalRun, answers, assert_same, check_invariant

Row = dict[str, Any]
EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
WU_QUERY = """
SELECT * FROM Sensor1 S1, Sensor2 S2, Sensor3 S3, Sensor4 S4
WHERE S1.epoch = S2.epoch AND S2.epoch = S3.epoch AND S3.epoch = S4.epoch
"""


def readings(seed: int, rows: int, jitter: int = 6, lag: int = 0) -> list[Row]:
    random = np.random.default_rng(seed)
    keys = np.maximum(0, np.arange(rows) // 2 - lag - random.integers(0, jitter, rows))
    keys[random.random(rows) < 0.05] //= 3
    return [{"epoch": int(key), "v": int(random.integers(0, 3)), "n": n} for n, key in enumerate(keys)]


def in_order(rows: Sequence[Row], order: KeyOrder) -> list[Row]:
    """The rows that are not past the mark when they come."""
    past = set(Disorder().judge(np.array([row["epoch"] for row in rows]), order).past.tolist())
    return [row for number, row in enumerate(rows) if number not in past]


def application(sql: str, disorder: str = "4 rows", streams: str = "abc", **more: Any) -> App:
    app = App("sensors")
    for name in streams:
        app.stream(name, "epoch int, v int, n int", ordered_by="epoch", disorder=disorder, **more)
    app.query("q", sql)
    return app


A, B, C = readings(1, 60), readings(2, 50, jitter=3), readings(3, 40, lag=4)
GIVEN = {"a": A, "b": B, "c": C}
DECLARED = KeyOrder("epoch", rows=4)
KEPT = {name: in_order(rows, DECLARED) for name, rows in GIVEN.items()}


def test_some_rows_are_past_the_mark() -> None:
    assert 0 < sum(len(KEPT[name]) for name in GIVEN) < sum(map(len, GIVEN.values()))


def test_two_streams() -> None:
    app = application("SELECT a.epoch, a.n, b.n AS m FROM a, b WHERE a.epoch = b.epoch")
    expected = [
        {"epoch": one["epoch"], "n": one["n"], "m": other["n"]}
        for one, other in product(KEPT["a"], KEPT["b"])
        if one["epoch"] == other["epoch"]
    ]
    assert_same(answers(app, GIVEN)["q"], expected)
    check_invariant(app, GIVEN, cases=3)


def test_three_streams_with_a_further_equality_and_a_condition() -> None:
    app = application(
        "SELECT a.n, b.n AS m, c.n AS k FROM a, b, c "
        "WHERE a.epoch = c.epoch AND b.epoch = c.epoch AND a.v = b.v AND a.v <= c.v AND c.n > 3"
    )
    expected = [
        {"n": one["n"], "m": two["n"], "k": three["n"]}
        for one, two, three in product(KEPT["a"], KEPT["b"], KEPT["c"])
        if one["epoch"] == two["epoch"] == three["epoch"]
        and one["v"] == two["v"]
        and one["v"] <= three["v"]
        and three["n"] > 3
    ]
    assert expected
    assert_same(answers(app, GIVEN)["q"], expected)
    check_invariant(app, GIVEN, cases=3)


def test_left_rows_without_a_partner_come_when_the_marks_have_passed_them() -> None:
    app = application("SELECT a.n, b.n AS m FROM a LEFT JOIN b ON a.epoch = b.epoch AND a.v = b.v AND b.n > 2")
    expected = []
    for one in KEPT["a"]:
        met = [two["n"] for two in KEPT["b"] if (two["epoch"], two["v"]) == (one["epoch"], one["v"]) and two["n"] > 2]
        expected += [{"n": one["n"], "m": each} for each in met or [None]]
    assert_same(answers(app, GIVEN)["q"], expected)
    check_invariant(app, GIVEN, cases=3)
    with LocalRun(app) as run:
        run.push("a", [{"epoch": 1, "v": 0, "n": 0}])
        run.push("b", [{"epoch": epoch, "v": 0, "n": 9} for epoch in (2, 3, 4, 5)])
        run.drain()
        assert not run.rows("q"), "a partner can still come"
        run.push("b", [{"epoch": 6, "v": 0, "n": 9}, {"epoch": 7, "v": 0, "n": 9}])
        run.drain()
        assert run.rows("q") == [{"n": 0, "m": None}]


def test_a_join_behind_a_join_goes_by_the_same_key() -> None:
    app = application(
        "SELECT x.n, c.n AS k FROM (SELECT a.n, b.epoch AS e FROM a, b WHERE a.epoch = b.epoch) x LEFT JOIN c "
        "ON x.e = c.epoch"
    )
    expected = []
    for one, two in product(KEPT["a"], KEPT["b"]):
        if one["epoch"] == two["epoch"]:
            met = [three["n"] for three in KEPT["c"] if three["epoch"] == one["epoch"]]
            expected += [{"n": one["n"], "k": each} for each in met or [None]]
    assert_same(answers(app, GIVEN)["q"], expected)
    check_invariant(app, GIVEN, cases=2)


def test_a_stream_joins_itself() -> None:
    app = application("SELECT x.n, y.n AS m FROM a x, a y WHERE x.epoch = y.epoch AND x.n < y.n", streams="a")
    expected = [
        {"n": one["n"], "m": two["n"]}
        for one, two in product(KEPT["a"], KEPT["a"])
        if one["epoch"] == two["epoch"] and one["n"] < two["n"]
    ]
    assert_same(answers(app, {"a": A})["q"], expected)
    check_invariant(app, {"a": A}, cases=3)


def test_times_are_keys() -> None:
    app, order = App("sensors"), KeyOrder("ts", distance=2_000_000)
    given = {}
    for name, rows in (("a", A), ("b", B)):
        app.stream(name, "ts timestamp, d date, n int", ordered_by="ts", disorder="2 s")
        given[name] = [{"ts": EPOCH + dt.timedelta(seconds=row["epoch"]), "n": row["n"]} for row in rows]
    app.query("q", "SELECT a.n, b.n AS m FROM a JOIN b ON a.ts = b.ts")
    kept = {}
    for name, rows in (("a", A), ("b", B)):
        past = set(Disorder().judge(np.array([row["epoch"] * 10**6 for row in rows]), order).past.tolist())
        kept[name] = [row for number, row in enumerate(rows) if number not in past]
    expected = [
        {"n": one["n"], "m": two["n"]} for one, two in product(kept["a"], kept["b"]) if one["epoch"] == two["epoch"]
    ]
    assert_same(answers(app, given)["q"], expected)
    check_invariant(app, given, cases=3)


def test_dates_are_keys() -> None:
    app = App("sensors")
    given = {}
    for name, rows in (("a", A), ("b", B)):
        app.stream(name, "d date, n int", ordered_by="d", disorder="4 rows")
        given[name] = [{"d": EPOCH.date() + dt.timedelta(days=row["epoch"]), "n": row["n"]} for row in rows]
    app.query("q", "SELECT a.n, b.n AS m FROM a, b WHERE a.d = b.d")
    expected = [
        {"n": one["n"], "m": two["n"]} for one, two in product(KEPT["a"], KEPT["b"]) if one["epoch"] == two["epoch"]
    ]
    assert_same(answers(app, given)["q"], expected)


def test_a_measured_disorder() -> None:
    order = KeyOrder("epoch", in_order=0.9)
    given = {"a": readings(4, 2500, jitter=40), "b": readings(5, 2500, jitter=9)}
    app = application("SELECT a.n, b.n AS m FROM a, b WHERE a.epoch = b.epoch", "measured", streams="ab", in_order=0.9)
    kept = {name: in_order(rows, order) for name, rows in given.items()}
    assert all(len(given[name]) * 0.85 < len(kept[name]) < len(given[name]) for name in given)
    expected = [
        {"n": one["n"], "m": two["n"]} for one, two in product(kept["a"], kept["b"]) if one["epoch"] == two["epoch"]
    ]
    assert_same(answers(app, given)["q"], expected)
    with LocalRun(app) as run:
        for first in range(0, 2500, 100):
            for name, rows in given.items():
                run.push(name, rows[first : first + 100])
            run.drain()
        assert_same(run.rows("q"), expected)
        [fold] = run.engine.board.folds()
        held = sum(run.log.end(stream) - low for stream, low in fold.lows.items())
        assert held < 500, "what marks have passed is forgotten"


def test_other_queries_see_rows_past_the_mark() -> None:
    app = application("SELECT a.n FROM a, b WHERE a.epoch = b.epoch", streams="ab")
    app.query("all_rows", "SELECT n FROM a")
    with LocalRun(app) as run:
        receipts = [run.push("a", A[:30]), run.push("a", A[30:])]
        run.drain()
        assert len(run.rows("all_rows")) == len(A)
        lost = len(A) - len(KEPT["a"])
        assert sum(receipt.past for receipt in receipts) == lost
        [entry] = run.missing("q")
        assert (entry.kind, entry.stream, entry.rows, entry.end) == ("past-mark", "a", lost, len(A))
        assert run.log.meters().streams["a"].past == lost
        query = run.engine.snapshot()["queries"]["q"]
        assert query["missing"] == {"past-mark": lost}
        assert query["completeness"] == 1 - lost / len(A)


def test_queries_share_the_way_into_their_joins() -> None:
    app = application("SELECT a.n FROM a, b WHERE a.epoch = b.epoch", streams="ab")
    app.query("p", "SELECT b.n FROM a, b WHERE a.epoch = b.epoch AND a.v = 1")
    check_invariant(app, {"a": A, "b": B}, cases=3)


def test_the_query_of_the_thesis_runs_as_given() -> None:
    """WU §3.1."""
    app = App("tracking")
    for number in range(1, 5):
        app.stream(
            f"Sensor{number}", "epoch long, x int, y int, z int, val double", ordered_by="epoch", disorder="9 rows"
        )
    app.query("tracked", WU_QUERY)
    given = {
        f"Sensor{number}": [
            {"epoch": epoch, "x": number, "y": 0, "z": 0, "val": 0.5} for epoch in (2, 1, 3) if epoch != number
        ]
        for number in range(1, 5)
    }
    given["Sensor3"].append({"epoch": 3, "x": 3, "y": 0, "z": 0, "val": 0.7})
    found = answers(app, given)["tracked"]
    assert [(row["S1_epoch"], row["S3_val"]) for row in found] == [(3, 0.7)]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (
            "SELECT a.n FROM a, b WHERE a.v = b.v",
            "b must meet the others on their ordered keys, as in a",
        ),
        ("SELECT a.n FROM a, b WHERE a.epoch = b.epoch + 1", "must meet the others on their ordered keys"),
        ("SELECT a.n FROM a, b, c WHERE a.epoch = b.epoch", "c must meet the others on their ordered keys"),
        ("SELECT a.n FROM a [RANGE 1 MINUTE], b WHERE a.epoch = b.epoch", "b needs a window in a join"),
        ("SELECT a.n FROM a, b, c [RANGE 1 MINUTE] WHERE a.epoch = b.epoch AND a.epoch = c.epoch", "a needs a window"),
        ("SELECT a.n FROM a, plain p WHERE a.epoch = p.epoch", "a needs a window in a join"),
        ("SELECT a.epoch, count(*) AS c FROM a, b WHERE a.epoch = b.epoch GROUP BY a.epoch", "window"),
        ("SELECT DISTINCT a.v FROM a, b WHERE a.epoch = b.epoch", "window"),
    ],
)
def test_what_has_no_bound_is_refused(sql: str, why: str) -> None:
    app = application(sql)
    app.stream("plain", "epoch int, n int")
    with pytest.raises(UserError, match=why):
        app.check()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ordered_by": "name"}, "it must be a whole number, a timestamp or a date"),
        ({"ordered_by": "x"}, "rows join on it only if it is exactly equal"),
        ({"ordered_by": "epoc"}, "'epoc' is not a column"),
        ({"ordered_by": "epoch", "disorder": "8 s"}, "disorder is a time, but ordered_by epoch is a number"),
        ({"ordered_by": "epoch", "disorder": "many"}, "disorder must be like '500 rows', '8 s' or 'measured'"),
        ({"ordered_by": "epoch", "disorder": "5 rows", "in_order": 0.9}, "in_order is for disorder = 'measured'"),
        ({"ordered_by": "epoch", "in_order": 1.0}, "in_order must be at least 0.5 and below 1"),
        ({"disorder": "5 rows"}, "say which column, as ordered_by"),
        ({"ordered_by": "epoch", "source": {"kind": "spark"}}, "not for a source of kind spark"),
    ],
)
def test_wrong_declarations_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        App("sensors").stream("s", "epoch int, name string, x double", **options)


def test_keys_without_a_place_in_the_order_are_dead_letters() -> None:
    app = App("sensors")
    app.stream("s", "epoch bigint", ordered_by="epoch")
    app.query("q", "SELECT epoch FROM s")
    with LocalRun(app) as run:
        rows = [{"epoch": None}, {"epoch": 2**63 - 1}, {"epoch": -(2**63)}, {"epoch": 1}]
        receipt = run.push("s", rows, strict=False)
        assert (receipt.dead, receipt.end) == (2, 2)


def test_a_stream_that_falls_is_told_of() -> None:
    app = application("SELECT a.n FROM a, b WHERE a.epoch = b.epoch", "measured", streams="ab")
    keys, numbers = pa.array(range(25_000, 0, -1), pa.int32()), pa.array(range(25_000), pa.int32())
    falling = pa.table({"epoch": keys, "v": numbers, "n": numbers})
    with LocalRun(app) as run:
        run.push("a", falling)
        run.drain()
        streams = {name: spec.stream for name, spec in app.streams.items()}
        assert [each["grows"] for each in joins_of(run.engine, run.log, streams)["q"]["inputs"]] == [True, False]
        told = "\n".join(explain_keys(run.queries["q"], app.streams, run.folder))
    assert "it grows with the stream: no memory is enough, choose another key" in told
