"""Windows, joins and aggregates of an application on Spark, against DuckDB, over a restart."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from freshet.app import App
from freshet.app.running.run import Run
from freshet.engine.fold_states import MOST_PIECES
from freshet.model import state_stream

pytestmark = pytest.mark.spark

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
CLOSED = "TIMESTAMP '2024-01-01 12:04:50'"
QUERIES = {
    "panes": (
        "SELECT k, count(*) AS n, sum(v) AS s, max(name) AS m FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k",
        f"""SELECT k, count(*), sum(v), max(name)
        FROM a JOIN range(-10, 60) AS b(i) ON ts >= b_end(i) - INTERVAL 1 MINUTE AND ts < b_end(i)
        WHERE b_end(i) <= {CLOSED} GROUP BY k, i""",
    ),
    # In stages: initcap is not compiled.
    "tumble": (
        "SELECT initcap(name) AS name, min(v) AS v FROM TUMBLE(a, ts, INTERVAL 30 SECONDS) GROUP BY initcap(name)",
        """SELECT upper(left(name, 1)) || lower(substr(name, 2)), min(v) FROM a
        WHERE time_bucket(INTERVAL 30 SECOND, ts) < TIMESTAMP '2024-01-01 12:04:30'
        GROUP BY 1, time_bucket(INTERVAL 30 SECOND, ts)""",
    ),
    "rows": (
        "SELECT k, sum(v) AS s FROM a [PARTITION BY k ROWS 3] GROUP BY k",
        "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY place ROWS 2 PRECEDING) FROM a",
    ),
    "joined": (
        "SELECT a.k, a.v, b.w FROM a [RANGE 10 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k WHERE a.v > b.w",
        """SELECT a.k, a.v, b.w FROM a JOIN b ON a.k = b.k AND a.v > b.w
        AND b.ts < a.ts + INTERVAL 10 SECOND AND a.ts < b.ts + INTERVAL 5 SECOND""",
    ),
}


def test_windows_and_joins_answer_as_the_whole_log_does(tmp_path: Path) -> None:
    a, b = rows_of(random.Random(7))
    halves = (slice(0, 300), slice(300, 600))
    for half in halves:
        with make_app(tmp_path).start() as run:
            for first in range(half.start, half.stop, 100):
                run.push(
                    "a", [{name: row[name] for name in ("ts", "k", "v", "name")} for row in a[first : first + 100]]
                )
                run.push("b", b[first // 3 : (first + 100) // 3])
            assert run.drain()
            meters = run.meters()["queries"]
            assert all(meters[name]["state_rows"] > 0 for name in QUERIES)
            answers = {name: run.read(name).to_pylist() for name in QUERIES}
    expected = duck(a, b)
    for name in QUERIES:
        assert Counter(tuple(row.values()) for row in answers[name]) == expected[name], name


def test_the_state_of_a_join_stays_in_few_segments(tmp_path: Path) -> None:
    app = App("scattered", state=tmp_path / "state")
    app.stream("a", "ts timestamp, k int, v int", event_time="ts", lateness="0 s")
    app.stream("b", "ts timestamp, k int", event_time="ts", lateness="0 s")
    app.query("pairs", "SELECT a.k, a.v FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.k = b.k")
    steps, pieces = MOST_PIECES + 20, []
    with app.start() as run:
        for step in range(steps):
            run.push("a", [{"ts": NOON + dt.timedelta(seconds=step), "k": step % 2, "v": step}])
            assert run.drain()
            pieces.append(_pieces(run, state_stream("pairs.join_1", 0)))
        run.push("b", [{"ts": NOON + dt.timedelta(seconds=steps), "k": 1}])
        assert run.drain()
        answers = Counter(run.read("pairs")["v"].to_pylist())
    assert answers == Counter(step for step in range(steps) if step % 2 == 1)
    # One more than the most may be there until a unit of its own has written the state anew.
    assert MOST_PIECES <= max(pieces) <= MOST_PIECES + 1
    assert pieces[-1] == steps - MOST_PIECES


def _pieces(run: Run, stream: str) -> int:
    """The segments in which a state lies."""
    queues = run._parts.queues
    low = queues.start_reader(stream, stream, "earliest")
    return len(queues.train(stream, low, queues.end(stream)).segments)


def make_app(folder: Path) -> App:
    app = App("windows", state=folder / "state")
    app.stream("a", "ts timestamp, k int, v int, name string", event_time="ts", lateness="5 s")
    app.stream("b", "ts timestamp, k int, w int", event_time="ts", lateness="0 s")
    for name, (sql, _) in QUERIES.items():
        app.query(name, sql)
    return app


def rows_of(rng: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Five minutes, the first stream out of order by up to four seconds."""
    a, b = [], []
    for place in range(600):
        time = NOON + dt.timedelta(seconds=place * 0.5)
        back = dt.timedelta(seconds=rng.random() * 4 if 0 < place < 599 else 0)
        a.append(
            {"ts": time - back, "k": rng.randrange(3), "v": rng.randrange(9), "name": rng.choice("xy"), "place": place}
        )
        if place % 3 == 0:
            b.append({"ts": time, "k": rng.randrange(3), "w": rng.randrange(9)})
    return a, b


def duck(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> dict[str, Counter[tuple[Any, ...]]]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, rows in (("a", a), ("b", b)):
            plain = [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in rows]
            connection.register(name, pa.Table.from_pylist(plain))
        connection.execute("CREATE MACRO b_end(i) AS TIMESTAMP '2024-01-01 12:00:00' + i * INTERVAL 10 SECOND")
        return {name: Counter(connection.execute(sql).fetchall()) for name, (_, sql) in QUERIES.items()}
