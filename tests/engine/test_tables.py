"""Joins with tables: every tuple meets the version that was there when it was taken in, whatever the schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.kit import KEEP, Application

from freshet.log import Retention, TableVersions
from freshet.model import ARRIVAL, parse_schema, version_stream
from freshet.policies import Policy
from freshet.testing import RandomSteps

TUPLES = parse_schema("ts timestamp, k string, v int")
NAMES = parse_schema("k string, w int, ok boolean")
TOWNS = parse_schema("w bigint, town string")
SHORT = Retention(history_age=0.0, history_bytes=0)
Name = tuple[str | None, int | None, bool]

QUERIES = {
    "named": "SELECT s.ts AS ts, s.k AS k, v, w FROM s JOIN names n ON s.k = n.k WHERE v < 4",
    "swapped": "SELECT v, w FROM names n JOIN s ON n.k = s.k AND v > w WHERE ok",
    "maybe": "SELECT s.ts AS ts, v, w FROM s LEFT JOIN names n ON s.k = n.k AND ok",
    "above": "SELECT s.ts AS ts, v, w FROM s LEFT JOIN names n ON s.k = n.k AND v > w AND v < 4 AND ok",
    "any": "SELECT v, w FROM s LEFT JOIN names n ON v + 1 = w OR s.k < n.k",
    "missing": "SELECT s.k AS k, v FROM s LEFT JOIN names n ON s.k = n.k WHERE n.k IS NULL",
    "every": "SELECT v, w FROM s CROSS JOIN names",
    "places": """
        SELECT v, town FROM s JOIN (SELECT upper(k) AS big, w FROM names WHERE ok) n ON upper(s.k) = n.big
        LEFT JOIN towns ON towns.w = n.w""",
    "sums": """
        SELECT w, count(*) AS n, sum(v) AS total, window_end AS till
        FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] LEFT JOIN names m ON s.k = m.k GROUP BY w""",
    "groups": """
        SELECT c.k AS k, n, till, w FROM (
            SELECT k, count(*) AS n, window_end AS till FROM s [RANGE 4 SECONDS SLIDE 4 SECONDS] GROUP BY k
        ) c JOIN names ON c.k = names.k""",
    "pairs": """
        SELECT s.v AS a, t.v AS b, w
        FROM s [RANGE 3 SECONDS] JOIN t [RANGE 5 SECONDS] ON s.k = t.k JOIN names n ON n.k = s.k""",
    "lonely": """
        SELECT s.v AS a, t.v AS b, w
        FROM s [RANGE 3 SECONDS] LEFT JOIN t [RANGE 4 SECONDS] ON s.k = t.k JOIN names n ON n.k = s.k""",
    "beside": """
        SELECT s.v AS a, t.v AS b, w
        FROM s [RANGE 3 SECONDS] JOIN names n ON n.k = s.k JOIN t [RANGE 5 SECONDS] ON s.k = t.k AND t.v < w""",
    "moving": "SELECT w, count(*) AS n FROM s [RANGE 4 SECONDS] JOIN names n ON s.k = n.k GROUP BY w",
    "small": "SELECT ts, k, v FROM s WHERE v < 3",
    "few": "SELECT small.v AS v, w FROM small JOIN names ON small.k = names.k",
    "last": """
        SELECT w, sum(v) AS total FROM (SELECT v, w FROM s JOIN names n ON s.k = n.k AND n.ok) [ROWS 3] GROUP BY w""",
}
READS = {"few": "small"}

AS_OF = "names.since <= {0} AND {0} < names.till"
PANES = "(SELECT unnest(range(0, 60000000, {0})) AS b)"
REFERENCE = {
    "named": f"SELECT s.us, s.k, v, w FROM s JOIN names ON {AS_OF.format('s.a')} AND s.k = names.k WHERE v < 4",
    "swapped": f"SELECT v, w FROM s JOIN names ON {AS_OF.format('s.a')} AND s.k = names.k WHERE v > w AND ok",
    "maybe": f"SELECT s.us, v, w FROM s LEFT JOIN names ON {AS_OF.format('s.a')} AND s.k = names.k AND ok",
    "above": f"""
        SELECT s.us, v, w FROM s
        LEFT JOIN names ON {AS_OF.format("s.a")} AND s.k = names.k AND v > w AND v < 4 AND ok""",
    "any": f"SELECT v, w FROM s LEFT JOIN names ON {AS_OF.format('s.a')} AND (v + 1 = w OR s.k < names.k)",
    "missing": f"""
        SELECT s.k, v FROM s WHERE NOT EXISTS (FROM names WHERE {AS_OF.format("s.a")} AND s.k = names.k)""",
    "every": f"SELECT v, w FROM s JOIN names ON {AS_OF.format('s.a')}",
    "places": f"""
        SELECT v, town FROM s JOIN names ON {AS_OF.format("s.a")} AND s.k = names.k AND ok
        LEFT JOIN towns ON towns.since <= s.a AND s.a < towns.till AND towns.w = names.w""",
    "sums": f"""
        SELECT w, count(*), sum(v), b FROM s LEFT JOIN names ON {AS_OF.format("s.a")} AND s.k = names.k,
        {PANES.format(2_000_000)} WHERE us < b AND b <= us + 6000000 GROUP BY w, b""",
    "groups": f"""
        SELECT c.k, n, b, w FROM (
            SELECT k, count(*) AS n, b, max(a) AS a FROM s, {PANES.format(4_000_000)}
            WHERE us < b AND b <= us + 4000000 GROUP BY k, b
        ) c JOIN names ON {AS_OF.format("c.a")} AND c.k = names.k""",
    "pairs": f"""
        SELECT s.v, t.v, w FROM s JOIN t ON s.k = t.k AND t.us < s.us + 3000000 AND s.us < t.us + 5000000
        JOIN names ON {AS_OF.format("greatest(s.a, t.a)")} AND names.k = s.k""",
    "lonely": f"""
        SELECT s.v, t.v, w FROM s LEFT JOIN t ON s.k = t.k AND t.us < s.us + 3000000 AND s.us < t.us + 4000000
        JOIN names ON {AS_OF.format("greatest(s.a, coalesce(t.a, s.a))")} AND names.k = s.k""",
    "beside": f"""
        SELECT s.v, t.v, w FROM s JOIN names ON {AS_OF.format("s.a")} AND names.k = s.k
        JOIN t ON s.k = t.k AND t.v < w AND t.us < s.us + 3000000 AND s.us < t.us + 5000000""",
    "moving": f"""
        WITH j AS (
            SELECT w, us, row_number() OVER (ORDER BY s.place, names.place) AS p
            FROM s JOIN names ON {AS_OF.format("s.a")} AND s.k = names.k)
        SELECT x.w, count(*) FROM j x JOIN j y
        ON y.p <= x.p AND y.us > x.us - 4000000 AND y.us <= x.us AND y.w IS NOT DISTINCT FROM x.w GROUP BY x.p, x.w""",
    "small": "SELECT us, k, v FROM s WHERE v < 3",
    "few": f"SELECT v, w FROM s JOIN names ON {AS_OF.format('s.a')} AND s.k = names.k WHERE v < 3",
    "last": f"""
        WITH j AS (
            SELECT w, v, row_number() OVER (ORDER BY s.place, names.place) AS p
            FROM s JOIN names ON {AS_OF.format("s.a")} AND s.k = names.k AND ok)
        SELECT x.w, sum(y.v) FROM j x JOIN j y ON y.p BETWEEN x.p - 2 AND x.p AND y.w IS NOT DISTINCT FROM x.w
        GROUP BY x.p, x.w""",
}


class Named(Application):
    """Streams ``s`` and ``t`` and tables ``names`` and ``towns``."""

    def __init__(self, queries: Mapping[str, str], policy: Policy | None = None, **options: Any) -> None:
        tables = {"names": NAMES.empty_table(), "towns": TOWNS.empty_table()}
        super().__init__(queries, policy, tables=tables, **options)

    def name(self, rows: Sequence[Name]) -> bool:
        """A new content of ``names``; ``towns`` has one for each ``w`` of it, so that it changes now and then, too."""
        self.put("towns", [{"w": w, "town": f"town {w}"} for w in sorted({w for _, w, _ in rows if w is not None})])
        return self.put("names", [dict(zip(NAMES.names, row, strict=True)) for row in rows])

    def tuples(self, stream: str) -> list[tuple[Any, ...]]:
        return [tuple(map(_micros, row)) for row in super().tuples(stream)]


NAME = st.tuples(st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(0, 3)), st.booleans())
ROWS = st.lists(
    st.tuples(
        st.integers(0, 30).map(float), st.sampled_from(["a", "b", "c", None]), st.one_of(st.none(), st.integers(0, 5))
    ),
    max_size=6,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("st"), ROWS),
        st.tuples(st.just("put"), st.lists(NAME, max_size=4), st.none()),
        st.tuples(st.just("heartbeat"), st.sampled_from("st"), st.integers(0, 30)),
        st.tuples(st.just("turns"), st.integers(1, 8), st.none()),
        st.tuples(st.just("tidy"), st.none(), st.none()),
        st.tuples(st.just("crash"), st.integers(0, 1000), st.none()),
    ),
    min_size=4,
    max_size=16,
)


def play(app: Named, steps: Sequence[tuple[str, Any, Any]], seed: int | None) -> Named:
    """What comes, with crashes and partial runs, or (without a seed) all of it before anything runs."""
    for kind, value, more in steps:
        if kind == "append":
            app.append(value, more)
        elif kind == "put":
            app.name(value)
        elif kind == "heartbeat":
            app.heartbeat(value, more)
        elif kind == "turns" and seed is not None:
            for _ in range(value):
                app.turn()
        elif kind == "tidy" and seed is not None:
            app.tidy()
        elif kind == "crash" and seed is not None:
            app.crash(RandomSteps(seed + value), seed + value)
    for stream in "st":
        app.heartbeat(stream, 1000.0)
    app.run()
    return app


@settings(max_examples=60, deadline=None)
@given(
    steps=STEPS,
    names=st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=3, unique=True),
    seed=st.integers(0, 10_000),
    slots=st.integers(1, 3),
    short=st.booleans(),
)
def test_answers_depend_on_the_log_alone(
    steps: list[tuple[str, Any, Any]], names: list[str], seed: int, slots: int, short: bool
) -> None:
    """The same as when all has come before anything runs, and as in one batch; also where versions are let go."""
    wanted = {*names, *(READS[name] for name in names if name in READS)}
    queries = {name: text for name, text in QUERIES.items() if name in wanted}
    plain = play(Named(queries), steps, None)
    other = Named(queries, RandomSteps(seed), slots=slots, seed=seed, retention=SHORT if short else KEEP)
    other = play(other, steps, seed)
    try:
        expected = reference(plain)
        for name in queries:
            assert other.answers(name) == plain.answers(name), name
            assert plain.answers(name) == expected[name], f"{name}, in one batch"
    finally:
        plain.close()
        other.close()


def reference(app: Named) -> dict[str, Counter[tuple[Any, ...]]]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        for name in ("s", "t"):
            table = app.log.read(name, 0, app.log.end(name), TUPLES.append(pa.field(ARRIVAL, pa.int64())))
            connection.register(f"{name}_", table.append_column("place", pa.array(range(len(table)), pa.int64())))
            connection.execute(
                f"CREATE VIEW {name} AS SELECT epoch_us(ts) AS us, k, v, place, {ARRIVAL} AS a FROM {name}_"
            )
        for name, versions in app.tables.items():
            connection.register(name, _valid(versions))
        return {name: Counter(connection.execute(text).fetchall()) for name, text in REFERENCE.items()}


def _valid(versions: TableVersions) -> pa.Table:
    """The rows of all versions with the arrivals of the tuples that meet them."""
    from freshet.log import StoredVersion

    log = versions._log
    segments = log.train(versions.stream, 0, log.end(versions.stream)).segments
    tables = []
    for place, segment in enumerate(segments):
        rows = StoredVersion(log.folder, segment).read()
        till = segments[place + 1].arrival if place + 1 < len(segments) else 2**62
        since = segment.arrival if place else 0
        for name, values in (("since", [since] * len(rows)), ("till", [till] * len(rows)), ("place", range(len(rows)))):
            rows = rows.append_column(name, pa.array(values, pa.int64()))
        tables.append(rows)
    return pa.concat_tables(tables)


@pytest.fixture
def app() -> Any:
    made = Named({"named": QUERIES["named"], "groups": QUERIES["groups"], "few": "SELECT k FROM s WHERE v < 3"})
    yield made
    made.close()


def test_a_tuple_meets_the_version_that_was_there_when_it_came(app: Named) -> None:
    app.name([("a", 1, True)])
    app.append("s", [(1, "a", 0)])
    app.name([("a", 2, True), ("a", 3, True)])
    app.append("s", [(2, "a", 1)])
    app.run()
    assert [(v, w) for _, _, v, w in app.tuples("named")] == [(0, 1), (1, 2), (1, 3)]


def test_the_same_content_is_no_new_version(app: Named) -> None:
    assert app.name([("a", 1, True)])
    assert not app.name([("a", 1, True)])
    assert app.tables["names"].number == 2


def test_arrivals_are_raised_to_the_version_that_was_there(app: Named) -> None:
    app.name([("a", 1, True)])
    arrival = app.tables["names"].kept.segments[-1].arrival
    app.append("s", [(1, "a", 0)])  # its source says that it came long ago
    assert app.log.arrival("s", 0) >= arrival


def test_a_version_stays_while_a_tuple_from_before_the_next_one_is_kept(app: Named) -> None:
    app.append("s", [(1, "a", 0)])
    app.name([("a", 1, True)])
    app.tidy()
    assert app.tables["names"].kept.rows == 2
    app.run()
    app.tidy()
    assert app.tables["names"].kept.rows == 2, "the tuple is history, and may be read by a query that is new"


def test_a_version_goes_with_the_last_tuple_that_could_meet_it() -> None:
    app = Named({"named": QUERIES["named"], "groups": QUERIES["groups"]}, retention=SHORT)
    try:
        app.name([("a", 1, True)])
        app.append("s", [(1, "a", 0)])
        app.name([("a", 2, True)])
        app.run()
        app.tidy()
        app.tidy()  # first the tuples go, then what they needed
        assert app.log.oldest("s") == app.log.end("s")
        assert app.tables["names"].kept.rows == 2, "the open window remembers a tuple that will meet the old version"
        app.heartbeat("s", 100)
        app.run()
        assert [row[3] for row in app.tuples("groups")] == [1]
        app.tidy()
        app.tidy()
        assert app.tables["names"].kept.rows == 1
        app.append("s", [(200, "a", 1)])
        app.run()
        assert app.log.read("named", app.log.end("named") - 1, app.log.end("named"))["w"].to_pylist() == [2]
    finally:
        app.close()


def test_other_columns_begin_anew(app: Named) -> None:
    app.name([("a", 1, True)])
    app.tables["names"].put(pa.table({"k": ["a"], "w": pa.array([7], pa.int32()), "ok": [True], "more": ["x"]}))
    assert app.tables["names"].kept.rows == 1
    app.append("s", [(1, "a", 0)])
    app.run()
    assert [row[3] for row in app.tuples("named")] == [7]


def test_what_is_before_a_table_is_known(app: Named) -> None:
    assert app.engine.board.streams_before("towns") == []
    before = app.engine.board.streams_before("names")
    assert "groups.c.aggregate.state" in before
    assert "few" not in before
    assert "named.join_1" in before
    assert version_stream("names") not in before


def _micros(value: Any) -> Any:
    return round(value.timestamp() * 1e6) if isinstance(value, datetime) else value
