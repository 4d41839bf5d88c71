"""What lowered queries answer, held against the plain SQL over the contents of their windows.

At each boundary the answer is that of the query without its windows over what lies in them then; with each tuple it is
that over the tuple's own window; a join without SLIDE is a join on times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sql.reference import EPOCH, Row, answers, micros, run

from freshet.model import Join, parse_schema
from freshet.sql import build_query

SECOND = 1_000_000
SCHEMAS = {"s": parse_schema("k int, v int, ts timestamp"), "t": parse_schema("k int, w int, ts timestamp")}
TIMES = {"s": "ts", "t": "ts"}


def row(k: int | None, value: int | None, seconds: float, name: str) -> Row:
    return {"k": k, name: value, "ts": EPOCH + timedelta(seconds=seconds)}


def rows(name: str) -> st.SearchStrategy[list[Row]]:
    small = st.one_of(st.none(), st.integers(0, 2))
    # Halves of seconds before and after the epoch: equal, late and on the boundaries.
    made = st.builds(row, small, small, st.integers(-12, 24).map(lambda n: n / 2), st.just(name))
    return st.lists(made, max_size=8).map(lambda many: [r | {"__arrival": i} for i, r in enumerate(many)])


def batch(text: str, **tables: Sequence[Row]) -> list[tuple[Any, ...]]:
    empty = {"s": row(None, None, 0, "v"), "t": row(None, None, 0, "w")}
    # A table of one row that is cut off keeps its types where there are no rows.
    filled = {name: [*table, empty[name] | {"__arrival": -1}] for name, table in tables.items()}
    views = ", ".join(f"{name} AS (SELECT * FROM all_{name} WHERE __arrival >= 0)" for name in tables)
    return run(f"WITH {views} {text}", **{f"all_{name}": table for name, table in filled.items()}).fetchall()


def same(found: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]]) -> None:
    def norm(values: Sequence[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(round(v, 9) if isinstance(v, float) else v for v in value) for value in values)

    assert norm(found) == norm(expected)


def in_window(table: Sequence[Row], boundary: int, size: int) -> list[Row]:
    return [r for r in table if boundary - size <= micros(r["ts"]) < boundary]


W = "[RANGE 4 SECONDS SLIDE 2 SECONDS]"
SLIDING = {
    f"SELECT k, count(*) AS n, sum(v) AS t, window_end AS e FROM s {W} WHERE v > 0 GROUP BY k HAVING count(*) < 3": (
        "SELECT k, count(*), sum(v), {b} FROM s WHERE v > 0 GROUP BY k HAVING count(*) < 3"
    ),
    f"SELECT k, max(v) AS v, window_end AS e FROM s {W} GROUP BY k HAVING min(v) < 2 AND v > 0": (
        "SELECT k, max(v), {b} FROM s GROUP BY k HAVING min(v) < 2 AND max(v) > 0"
    ),
    "SELECT max(v) - min(v) AS d, count(DISTINCT k) AS n, count(v) FILTER (WHERE k = 1) AS f, window_end AS e "
    f"FROM s {W}": (
        "SELECT max(v) - min(v), count(DISTINCT k), count(v) FILTER (WHERE k = 1), {b} FROM s HAVING count(*) > 0"
    ),
    "SELECT count(*) AS n, window.end AS e, k + 1 AS j FROM s GROUP BY window(ts, '4 seconds', '2 seconds'), k + 1": (
        "SELECT count(*), {b}, k + 1 FROM s GROUP BY k + 1"
    ),
    f"SELECT DISTINCT v, window_end AS e FROM s {W} WHERE k = 1": "SELECT DISTINCT v, {b} FROM s WHERE k = 1",
    f"SELECT v, window_end AS e FROM s {W} UNION SELECT w, window_end FROM t {W}": (
        "SELECT v, {b} FROM s UNION SELECT w, {b} FROM t"
    ),
    f"SELECT v, window_end AS e FROM s {W} EXCEPT SELECT w, window_end FROM t {W}": (
        "SELECT v, {b} FROM s EXCEPT SELECT w, {b} FROM t"
    ),
    f"SELECT v, window_end AS e FROM s {W} INTERSECT SELECT w, window_end FROM t {W} "
    f"EXCEPT SELECT k, window_end FROM s {W}": (
        "SELECT v, {b} FROM s INTERSECT SELECT w, {b} FROM t EXCEPT SELECT k, {b} FROM s"
    ),
    f"SELECT x.k, sum(v) AS a, sum(w) AS b, window_end AS e FROM s {W} x, t {W} y "
    "WHERE x.k = y.k AND v <> w GROUP BY x.k": (
        "SELECT s.k, sum(v), sum(w), {b} FROM s, t WHERE s.k = t.k AND v <> w GROUP BY s.k"
    ),
    f"SELECT max(n) AS m, window_end AS e FROM (SELECT k, count(*) AS n FROM s {W} GROUP BY k) WHERE n > 1": (
        "SELECT max(n), {b} FROM (SELECT k, count(*) AS n FROM s GROUP BY k) WHERE n > 1 HAVING count(*) > 0"
    ),
    f"SELECT a.n, b.n AS m, a.e FROM (SELECT k, count(*) AS n, window_end AS e FROM s {W} GROUP BY k) a "
    f"JOIN (SELECT k, count(*) AS n FROM t {W} GROUP BY k) b ON a.k = b.k": (
        "SELECT a.n, b.n, {b} FROM (SELECT k, count(*) AS n FROM s GROUP BY k) a "
        "JOIN (SELECT k, count(*) AS n FROM t GROUP BY k) b ON a.k = b.k"
    ),
    f"SELECT k, count(*) AS n, window_end AS e FROM (SELECT k FROM s {W} UNION ALL SELECT w FROM t {W}) GROUP BY k": (
        "SELECT k, count(*), {b} FROM (SELECT k FROM s UNION ALL SELECT w FROM t) GROUP BY k"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "plain"), SLIDING.items(), ids=range(len(SLIDING)))
@given(s=rows("v"), t=rows("w"))
@settings(max_examples=12, deadline=None)
def test_at_every_boundary_the_answer_over_what_lies_in_the_windows(
    text: str, plain: str, s: list[Row], t: list[Row]
) -> None:
    query = build_query("q", text, SCHEMAS, times=TIMES)
    expected = []
    for boundary in range(-10 * SECOND, 22 * SECOND, 2 * SECOND):
        end = f"timestamp_micros({boundary})"
        tables = {name: in_window(table, boundary, 4 * SECOND) for name, table in (("s", s), ("t", t))}
        if any(tables.values()):
            expected += batch(plain.format(b=end), **tables)
    same(answers(query, {"s": s, "t": t}), expected)


def by_time(table: Sequence[Row], offset: int) -> list[Row]:
    now = micros(table[offset]["ts"])
    return [r for r in table[: offset + 1] if now - 3 * SECOND < micros(r["ts"]) <= now]


def by_rows(table: Sequence[Row], offset: int) -> list[Row]:
    return list(table[: offset + 1][-3:])


def by_partition(table: Sequence[Row], offset: int) -> list[Row]:
    return [r for r in table[: offset + 1] if r["k"] == table[offset]["k"]][-2:]


def by_all(table: Sequence[Row], offset: int) -> list[Row]:
    return list(table[: offset + 1])


WITH_EACH: list[tuple[str, str, Callable[[Sequence[Row], int], list[Row]]]] = [
    ("SELECT sum(v) AS t, count(*) AS n, window_end AS e FROM s [RANGE 3 SECONDS]",
     "SELECT sum(v), count(*), (SELECT ts FROM s WHERE __arrival = {o}) FROM s", by_time),
    ("SELECT k, avg(v) AS a FROM s [RANGE 3 SECONDS] WHERE v > 0 GROUP BY k",
     "SELECT k, avg(v) FROM s WHERE v > 0 GROUP BY k HAVING max(__arrival) = {o}", by_time),
    ("SELECT k, max(v) AS m, count(*) AS n FROM s [ROWS 3] WHERE v > 0 AND k > 0 GROUP BY k",
     "SELECT k, max(v), count(*) FROM s WHERE v > 0 AND k > 0 GROUP BY k HAVING max(__arrival) = {o}", by_rows),
    ("SELECT max(v) AS m, count(*) AS n FROM s [PARTITION BY k ROWS 2]",
     "SELECT max(v), count(*) FROM s", by_partition),
    ("SELECT avg(v) AS m FROM s [UNBOUNDED] HAVING count(v) > 1", "SELECT avg(v) FROM s HAVING count(v) > 1", by_all),
    ("SELECT DISTINCT k, v FROM s [RANGE 3 SECONDS]",
     "SELECT k, v FROM s GROUP BY k, v HAVING max(__arrival) = {o} AND count(*) = 1", by_time),
    ("SELECT DISTINCT k FROM s [ROWS 3] WHERE v > 0",
     "SELECT k FROM s WHERE v > 0 GROUP BY k HAVING max(__arrival) = {o} AND count(*) = 1", by_rows),
]  # fmt: skip


@pytest.mark.parametrize(("text", "plain", "window"), WITH_EACH, ids=range(len(WITH_EACH)))
@given(s=rows("v"))
@settings(max_examples=12, deadline=None)
def test_with_each_tuple_the_answer_over_its_window(
    text: str, plain: str, window: Callable[[Sequence[Row], int], list[Row]], s: list[Row]
) -> None:
    query = build_query("q", text, SCHEMAS, times=TIMES)
    expected = [r for offset in range(len(s)) for r in batch(plain.format(o=offset), s=window(s, offset))]
    same(answers(query, {"s": s}), expected)


MEET = "x.ts < y.ts + INTERVAL 3 SECONDS AND y.ts < x.ts + INTERVAL 2 SECONDS"
JOINS = [
    ("SELECT x.k, v, w FROM s [RANGE 2 SECONDS] x JOIN t [RANGE 3 SECONDS] y "
     "ON x.k = y.k AND w > 0 AND v <> w WHERE v > 0",
     f"SELECT x.k, v, w FROM s x JOIN t y ON x.k = y.k AND w > 0 AND v <> w AND {MEET} WHERE v > 0"),
    ("SELECT x.k, v, w, x.ts FROM s [RANGE 2 SECONDS] x LEFT JOIN t [RANGE 3 SECONDS] y "
     "ON x.k = y.k AND w > 0 WHERE v > 0",
     f"SELECT x.k, v, w, x.ts FROM s x LEFT JOIN t y ON x.k = y.k AND w > 0 AND {MEET} WHERE v > 0"),
    ("SELECT v, w FROM s [RANGE 2 SECONDS] x LEFT JOIN t [RANGE 3 SECONDS] y ON x.k = y.k WHERE w IS NULL OR w > 1",
     f"SELECT v, w FROM s x LEFT JOIN t y ON x.k = y.k AND {MEET} WHERE w IS NULL OR w > 1"),
    ("SELECT x.v, y.v AS o FROM s [NOW] x, s [RANGE 3 SECONDS] y WHERE x.k = y.k",
     "SELECT x.v, y.v FROM s x, s y WHERE x.k = y.k AND y.ts <= x.ts AND x.ts < y.ts + INTERVAL 3 SECONDS"),
    ("SELECT x.v, y.w, z.v AS o FROM s [RANGE 2 SECONDS] x, t [RANGE 3 SECONDS] y, s [RANGE 1 SECOND] z "
     "WHERE x.k = y.k AND y.w = z.k",
     f"SELECT x.v, y.w, z.v FROM s x, t y, s z WHERE x.k = y.k AND y.w = z.k AND {MEET} "
     "AND greatest(x.ts, y.ts, z.ts) < "
     "least(x.ts + INTERVAL 2 SECONDS, y.ts + INTERVAL 3 SECONDS, z.ts + INTERVAL 1 SECOND)"),
    ("SELECT x.v, y.w, window_end AS e FROM TUMBLE(s, ts, INTERVAL 2 SECONDS) x "
     "JOIN TUMBLE(t, ts, INTERVAL 2 SECONDS) y ON x.k = y.k AND x.window_end = y.window_end",
     "SELECT x.v, y.w, timestamp_micros(CAST(floor(epoch_us(x.ts) / 2000000) * 2000000 + 2000000 AS BIGINT)) "
     "FROM s x JOIN t y "
     "ON x.k = y.k AND floor(epoch_us(x.ts) / 2000000) = floor(epoch_us(y.ts) / 2000000)"),
]  # fmt: skip
MEETINGS = {
    "path": "x.k = y.k AND y.w = z.v",
    "path of four": "x.k = y.k AND y.w = z.k AND z.v = u.w",
    "star": "x.k = y.k AND x.k = z.k",
    "star of four": "y.k = x.k AND z.k = x.k AND u.k = y.k",
    "two stars that meet": "x.k = y.k AND z.k = u.k AND y.k = z.k",
    "triangle": "x.k = y.k AND y.w = z.v AND z.k = x.v",
    "triangle of one key": "x.k = y.k AND y.k = z.k AND z.k = x.k",
    "cycle of four": "x.k = y.k AND y.w = z.k AND z.v = u.w AND u.k = x.v",
    "a key twice": "x.k = y.k AND x.v = y.k AND z.k = y.k AND x.v < z.v",
    "no key": "x.v + y.w > z.v",
    "a key of two": "x.k = z.k AND y.w < 2",
    "keys that are computed": "x.k + 1 = y.k AND y.k = z.k + 1 AND x.v IS NULL",
    "types that are not the same": "x.k = y.k * 1.0 AND z.k = y.k * 1.0 AND CAST(z.v AS BIGINT) = x.v",
}
SECONDS = {"x": 2, "y": 3, "z": 1, "u": 4}


def meeting(where: str, window: str) -> tuple[str, str]:
    """A FROM of three or four streams, and the same without windows."""
    members = [("s", "x"), ("t", "y"), ("s", "z"), ("t", "u")][: 4 if "u." in where else 3]
    names = ", ".join(f"{alias}.{'v' if name == 's' else 'w'} AS {alias}v" for name, alias in members)
    windows = [f"{name} {window.format(SECONDS[alias])} {alias}" for name, alias in members]
    plain = ", ".join(f"{name} {alias}" for name, alias in members)
    return f"SELECT {names} FROM {', '.join(windows)} WHERE {where}", f"SELECT {names} FROM {plain} WHERE {where}"


@pytest.mark.parametrize("in_pairs", [False, True], ids=["at once", "in pairs"])
@pytest.mark.parametrize("where", MEETINGS.values(), ids=MEETINGS.keys())
@given(s=rows("v"), t=rows("w"))
@settings(max_examples=8, deadline=None)
def test_streams_that_are_joined_at_once(in_pairs: bool, where: str, s: list[Row], t: list[Row]) -> None:
    text, plain = meeting(where, "[RANGE {} SECONDS]")
    query = build_query("q", text, SCHEMAS, times=TIMES, in_pairs=in_pairs)
    assert sum(isinstance(each, Join) for each in query.graph.operators.values()) == (
        text.count(",") // 2 if in_pairs else 1
    )
    aliases = [alias for alias in SECONDS if f"{alias}v" in text]
    starts = ", ".join(f"{alias}.ts" for alias in aliases)
    ends = ", ".join(f"{alias}.ts + INTERVAL {SECONDS[alias]} SECONDS" for alias in aliases)
    same(answers(query, {"s": s, "t": t}), batch(f"{plain} AND greatest({starts}) < least({ends})", s=s, t=t))


@pytest.mark.parametrize("where", ["x.k = y.k AND y.w = z.v", "x.k = y.k AND z.k = y.k", "x.v + y.w > z.v"])
@given(s=rows("v"), t=rows("w"))
@settings(max_examples=8, deadline=None)
def test_streams_that_are_joined_at_once_at_every_boundary(where: str, s: list[Row], t: list[Row]) -> None:
    text, plain = meeting(where, "[RANGE {} SECONDS SLIDE 1 SECOND]")
    text = f"SELECT count(*) AS n, sum(xv + yv) AS t, window_end AS e FROM ({text})"
    query = build_query("q", text, SCHEMAS, times=TIMES)
    expected = []
    for boundary in range(-8 * SECOND, 20 * SECOND, SECOND):
        inside = plain
        for name, alias in (("s", "x"), ("t", "y"), ("s", "z")):
            first = boundary - SECONDS[alias] * SECOND
            rest = f"(SELECT * FROM {name} WHERE epoch_us(ts) >= {first} AND epoch_us(ts) < {boundary}) {alias}"
            inside = inside.replace(f"{name} {alias}", rest)
        expected += batch(
            f"SELECT count(*), sum(xv + yv), timestamp_micros({boundary}) FROM ({inside}) HAVING count(*) > 0", s=s, t=t
        )
    same(answers(query, {"s": s, "t": t}), expected)


@given(s=rows("v"), t=rows("w"))
@settings(max_examples=12, deadline=None)
def test_a_left_join_behind_and_in_front_of_streams_that_are_joined_at_once(s: list[Row], t: list[Row]) -> None:
    text = (
        "SELECT x.v, y.w, z.v AS o, u.w AS p FROM s {0} x JOIN t {0} y ON x.k = y.k JOIN s {0} z ON z.k = y.k "
        "LEFT JOIN t {0} u ON u.k = x.v"
    )
    near = "greatest(x.ts, y.ts, z.ts{0}) < least(x.ts, y.ts, z.ts{0}) + INTERVAL 2 SECONDS"
    plain = text.format("").replace("LEFT JOIN t  u", f"AND {near.format('')} LEFT JOIN t u")
    query = build_query("q", text.format("[RANGE 2 SECONDS]"), SCHEMAS, times=TIMES)
    same(answers(query, {"s": s, "t": t}), batch(f"{plain} AND {near.format(', u.ts')}", s=s, t=t))
    text = (
        "SELECT x.v, u.w FROM s {0} x LEFT JOIN t {0} u ON u.k = x.v{1} "
        "JOIN t {0} y ON x.k = y.k JOIN s {0} z ON z.k = y.k"
    )
    query = build_query("q", text.format("[RANGE 2 SECONDS]", ""), SCHEMAS, times=TIMES)
    joins = [each for each in query.graph.operators.values() if isinstance(each, Join)]
    assert sorted(len(each.ports) for each in joins) == [2, 3]
    two = " AND greatest(x.ts, u.ts) < least(x.ts, u.ts) + INTERVAL 2 SECONDS"
    plain = f"{text.format('', two)} AND {near.format(', u.ts')}"
    same(answers(query, {"s": s, "t": t}), batch(plain, s=s, t=t))
