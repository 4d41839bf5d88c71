"""Answers depend on the log alone: whatever the trains, the policy, the workers, and a crash in the middle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.kit import STREAMS, Anything, Application

QUERIES = {
    "sliding": """
        SELECT k, count(*) AS n, sum(v) AS total, window_end AS till
        FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] GROUP BY k""",
    "tumbling": """
        SELECT window_end, max(v) AS top FROM TUMBLE(s, ts, INTERVAL 5 SECONDS) GROUP BY window_start, window_end""",
    "having": """
        SELECT k, count(DISTINCT v) AS n, window_end FROM t [RANGE 4 SECONDS SLIDE 4 SECONDS] WHERE v < 3
        GROUP BY k HAVING count(*) > 1""",
    "moving": "SELECT ts, k, count(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY ts, k",
    "last": "SELECT k, sum(v) AS total FROM s [PARTITION BY k ROWS 3] GROUP BY k",
    "pairs": """
        SELECT s.ts AS ts, s.k AS k, s.v AS a, t.v AS b
        FROM s [RANGE 3 SECONDS] JOIN t [RANGE 5 SECONDS] ON s.k = t.k WHERE s.v <> t.v""",
    "maybe": """
        SELECT s.ts AS ts, s.v AS a, t.v AS b
        FROM s [RANGE 3 SECONDS] LEFT JOIN t [RANGE 4 SECONDS] ON s.k = t.k""",
    "three": """
        SELECT s.ts AS ts, s.v AS a, t.v AS b, u.v AS c
        FROM s [RANGE 4 SECONDS], t [RANGE 4 SECONDS], u [RANGE 4 SECONDS] WHERE s.k = t.k AND t.k = u.k""",
    "counted": """
        SELECT s.k AS k, count(*) AS n, window_end
        FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] JOIN t [RANGE 6 SECONDS SLIDE 2 SECONDS] ON s.k = t.k GROUP BY s.k""",
    "gone": """
        SELECT k FROM s [RANGE 4 SECONDS SLIDE 4 SECONDS]
        EXCEPT SELECT k FROM t [RANGE 4 SECONDS SLIDE 4 SECONDS]""",
    "busy": "SELECT window_end, max(n) AS most FROM sliding [RANGE 8 SECONDS SLIDE 8 SECONDS]",
    "small": "SELECT ts, k, v FROM s WHERE v < 3",
    "few": "SELECT k, count(*) AS n, window_end FROM small [RANGE 6 SECONDS SLIDE 3 SECONDS] GROUP BY k",
    "met": "SELECT k, count(*) AS n, window_end FROM pairs [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k",
}
READS = {"busy": "sliding", "few": "small", "met": "pairs"}

ROWS = st.lists(
    st.tuples(
        st.integers(0, 30).map(float), st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(0, 5))
    ),
    max_size=6,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from(STREAMS), ROWS),
        st.tuples(st.just("heartbeat"), st.sampled_from(STREAMS), st.integers(0, 30)),
        st.tuples(st.just("turns"), st.integers(1, 8), st.none()),
        st.tuples(st.just("crash"), st.integers(0, 1000), st.none()),
    ),
    min_size=4,
    max_size=14,
)


def chosen(names: Sequence[str]) -> dict[str, str]:
    """Queries with those that they read."""
    wanted = {*names, *(READS[name] for name in names if name in READS)}
    return {name: text for name, text in QUERIES.items() if name in wanted}


def play(app: Application, steps: Sequence[tuple[str, Any, Any]], seed: int | None) -> Application:
    """What comes, with crashes and partial runs, or (without a seed) all of it before anything runs."""
    for kind, value, more in steps:
        if kind == "append":
            app.append(value, more)
        elif kind == "heartbeat":
            app.heartbeat(value, more)
        elif kind == "turns" and seed is not None:
            for _ in range(value):
                app.turn()
        elif kind == "crash" and seed is not None:
            app = app.crash(Anything(seed + value), seed + value)
    app.run()
    return app


CASES = given(
    steps=STEPS,
    names=st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=3, unique=True),
    seed=st.integers(0, 10_000),
    slots=st.integers(1, 3),
)


@settings(max_examples=60, deadline=None)
@CASES
def test_answers_depend_on_the_log_alone(
    steps: list[tuple[str, Any, Any]], names: list[str], seed: int, slots: int
) -> None:
    check(steps, names, seed, slots)


@pytest.mark.long
@pytest.mark.timeout(0)
@settings(max_examples=5_000, deadline=None)
@CASES
def test_answers_depend_on_the_log_alone_in_thousands_of_cases(
    steps: list[tuple[str, Any, Any]], names: list[str], seed: int, slots: int
) -> None:
    check(steps, names, seed, slots)


def check(steps: Sequence[tuple[str, Any, Any]], names: Sequence[str], seed: int, slots: int) -> None:
    """The same answers as when all has come before anything runs and, once every window is closed, as in one batch."""
    queries = chosen(names)
    plain = play(Application(queries), steps, None)
    other = play(Application(queries, Anything(seed), slots=slots, seed=seed), steps, seed)
    try:
        for name in (*STREAMS, *queries):
            assert other.answers(name) == plain.answers(name), name
        for app in (plain, other):
            for stream in STREAMS:
                app.heartbeat(stream, 1000.0)
            app.run()
        expected = reference(plain)
        for name in queries:
            assert other.answers(name) == plain.answers(name), f"{name}, after all windows have closed"
            found = Counter(tuple(map(_micros, row)) for row in plain.rows(name))
            assert found == expected[name], f"{name}, in one batch"
    finally:
        plain.close()
        other.close()


BOUNDARIES = "SELECT unnest(range(0, 60000000, {0})) AS b"


def _panes(
    columns: str, source: str, size: int, slide: int, keys: str, where: str = "true", having: str = "true"
) -> str:
    """One row for each group and boundary at which a tuple of it is valid."""
    grouped = f"{keys}, b" if keys else "b"
    return (
        f"SELECT {columns} FROM {source} AS x, ({BOUNDARIES.format(slide * 10**6)}) WHERE {where} "
        f"AND us < b AND b <= us + {size * 10**6} GROUP BY {grouped} HAVING {having}"
    )


def _meets(one: str, size: int, other: str, more: int) -> str:
    return f"{one}.us < {other}.us + {more * 10**6} AND {other}.us < {one}.us + {size * 10**6}"


EXPECTED = {
    "sliding": _panes("k, count(*), sum(v), b", "s", 6, 2, "k"),
    "tumbling": _panes("b, max(v)", "s", 5, 5, ""),
    "having": _panes("k, count(DISTINCT v), b", "t", 4, 4, "k", "v < 3", "count(*) > 1"),
    "moving": "SELECT us, k, (SELECT count(*) FROM s AS o WHERE o.k IS NOT DISTINCT FROM s.k AND o.us = s.us "
    "AND o.pos <= s.pos) FROM s",
    "last": "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY pos ROWS 2 PRECEDING) FROM s",
    "pairs": f"SELECT s.us, s.k, s.v, t.v FROM s JOIN t ON s.k = t.k AND {_meets('s', 3, 't', 5)} WHERE s.v <> t.v",
    "maybe": f"SELECT s.us, s.v, t.v FROM s LEFT JOIN t ON s.k = t.k AND {_meets('s', 3, 't', 4)}",
    "three": "SELECT s.us, s.v, t.v, u.v FROM s, t, u WHERE s.k = t.k AND t.k = u.k AND "
    "greatest(s.us, t.us, u.us) < least(s.us, t.us, u.us) + 4000000",
    "counted": f"SELECT s.k, count(*), b FROM s JOIN t ON s.k = t.k, ({BOUNDARIES.format(2 * 10**6)}) "
    "WHERE s.us < b AND b <= s.us + 4000000 AND t.us < b AND b <= t.us + 6000000 GROUP BY s.k, b",
    "gone": f"SELECT k FROM ({_panes('k, b', 's', 4, 4, 'k')} EXCEPT {_panes('k, b', 't', 4, 4, 'k')})",
    "busy": _panes("b, max(n)", f"({_panes('k, count(*) AS n, b AS us', 's', 6, 2, 'k')})", 8, 8, ""),
    "small": "SELECT us, k, v FROM s WHERE v < 3",
    "few": _panes("k, count(*), b", "s", 6, 3, "k", "v < 3"),
    "met": _panes(
        "k, count(*), b",
        f"(SELECT s.us AS us, s.k AS k FROM s JOIN t ON s.k = t.k AND {_meets('s', 3, 't', 5)} WHERE s.v <> t.v)",
        4,
        2,
        "k",
    ),
}


def reference(app: Application) -> dict[str, Counter[tuple[Any, ...]]]:
    """All answers by DuckDB, in one batch over what the log holds."""
    connection = duckdb.connect()
    for stream in STREAMS:
        rows = [(place, _micros(ts), k, v) for place, (ts, k, v) in enumerate(app.rows(stream))]
        types = {"pos": pa.int64(), "us": pa.int64(), "k": pa.string(), "v": pa.int64()}
        columns = list(zip(*rows, strict=True)) or [()] * len(types)
        table = pa.table({n: pa.array(c, t) for (n, t), c in zip(types.items(), columns, strict=True)})
        connection.register(stream, table)
    return {name: Counter(connection.execute(text).fetchall()) for name, text in EXPECTED.items()}


def _micros(value: Any) -> Any:
    """Times as microseconds, all else as it is."""
    return round(value.timestamp() * 1e6) if isinstance(value, datetime) else value
