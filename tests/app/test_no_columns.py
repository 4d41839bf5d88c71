"""Queries that need no column of their streams, on Spark, against DuckDB; beside them one that gives out too much."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from freshet.app import App
from freshet.app.running.run import Run

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.timeout(900)]

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
# Places are offsets, and "came" are arrivals in microseconds.
QUERIES = {
    "rows_10": (
        "SELECT count(*) AS n FROM a [ROWS 10]",
        "SELECT count(*) OVER (ORDER BY place ROWS 9 PRECEDING) FROM a",
    ),
    "unbounded": ("SELECT count(*) AS n FROM a [UNBOUNDED]", "SELECT place + 1 FROM a"),
    "range_5": (
        "SELECT count(*) AS n FROM a [RANGE 5 SECONDS]",
        "SELECT count(*) FROM a x JOIN a y ON y.place <= x.place AND y.came > x.came - 5000000 GROUP BY x.place",
    ),
    "event_rows_10": (
        "SELECT count(*) AS n FROM e [ROWS 10]",
        "SELECT count(*) OVER (ORDER BY place ROWS 9 PRECEDING) FROM e",
    ),
    "joined": (
        "SELECT 1 AS one FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON 1 = 1",
        "SELECT 1 FROM a JOIN b ON 1 = 1",
    ),
    "event_joined": (
        "SELECT 1 AS one FROM e [RANGE 5 SECONDS] JOIN f [RANGE 5 SECONDS] ON 1 = 1",
        "SELECT 1 FROM e JOIN f ON abs(date_diff('microsecond', e.ts, f.ts)) < 5000000",
    ),
    # Not compiled, and behind a join that gives out nothing but its times.
    "staged": (
        "SELECT initcap('one') AS one FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON 1 = 1",
        "SELECT 'One' FROM a JOIN b ON 1 = 1",
    ),
    "constant": ("SELECT 1 AS one FROM a", "SELECT 1 FROM a"),
}
SLIDING = "SELECT count(*) AS n, window_end AS e FROM a [RANGE 2 SECONDS SLIDE 1 SECONDS]"
SLID = """SELECT count(*), b FROM a JOIN (SELECT unnest(generate_series(?::BIGINT, ?::BIGINT, 1000000)) AS b)
ON came >= b - 2000000 AND came < b GROUP BY b"""
# Two hundred rows of each make forty thousand: a hundred for each row that is read.
TOO_MUCH = "SELECT 1 AS one FROM c [RANGE 1 HOUR] JOIN d [RANGE 1 HOUR] ON 1 = 1"


def test_they_answer_as_duckdb_does(tmp_path: Path) -> None:
    app = App("columns", state=tmp_path / "state", master="local[2]", max_rows_out_per_row=20)
    for name in "abcd":
        app.stream(name, "k int, v string")
    for name in "ef":
        app.stream(name, "ts timestamp, k int", event_time="ts", lateness="0 s")
    for name, (sql, _) in QUERIES.items():
        app.query(name, sql)
    app.query("slid", SLIDING)
    app.query("too_much", TOO_MUCH)
    with app.start() as run:
        for name in "cd":
            run.push(name, [{"k": k, "v": "x"} for k in range(200)])
        for start in (0, 12):
            for name in "ab":
                run.push(name, [{"k": k, "v": "x"} for k in range(12)])
            for name in "ef":
                rows = [{"ts": NOON + dt.timedelta(seconds=start + k), "k": k} for k in range(12)]
                run.push(name, rows)
            assert run.drain(300)
        boundaries = wait_for_windows(run)
        meters = run.meters()
        found = {name: bag(run, name) for name in QUERIES}
        expected, slid = duck(run, boundaries)
        counted = Counter((row["n"], row["e"].timestamp() * 1e6) for row in run.read("slid").to_pylist())
    assert meters["trouble"] is None
    states = {name: (query["state"], query["reason"]) for name, query in meters["queries"].items()}
    state, reason = states.pop("too_much")
    assert state == "quarantined"
    assert "rows in (max_rows_out_per_row = 20)" in (reason or "")
    assert set(states.values()) == {("active", None)}
    assert found == expected
    assert {each: n for each, n in counted.items() if each[1] in boundaries} == slid


def wait_for_windows(run: Run) -> list[int]:
    """Waits until a window over the last tuple has been answered; all boundaries until then."""
    arrivals = run.read("a", arrival=True)["__arrival"].to_pylist()
    first, last = (at // 1_000_000 * 1_000_000 + 1_000_000 for at in (arrivals[0], arrivals[-1]))
    until = time.monotonic() + 600
    while not any(row["e"].timestamp() * 1e6 >= last for row in run.read("slid").to_pylist()):
        assert time.monotonic() < until, run.report()
        time.sleep(0.2)
    return list(range(first, last + 1, 1_000_000))


def bag(run: Run, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in run.read(name).to_pylist())


def duck(run: Run, boundaries: list[int]) -> tuple[dict[str, Counter[tuple[Any, ...]]], Counter[tuple[Any, ...]]]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in "abef":
            table = run.read(name, arrival=True).rename_columns(["x", "y", "came"])
            table = table.append_column("place", [list(range(table.num_rows))])
            connection.register(name, table.rename_columns(["ts", *table.column_names[1:]]))
        answers = {name: Counter(connection.execute(sql).fetchall()) for name, (_, sql) in QUERIES.items()}
        slid = connection.execute(SLID, [boundaries[0], boundaries[-1]]).fetchall()
        return answers, Counter(slid)
