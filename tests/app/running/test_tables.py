"""Tables of an application: checked without Spark, looked at while it runs, joined on Spark against DuckDB."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from freshet.app import App, InvalidApp
from freshet.app.declared.spec import TableSpec
from freshet.app.running.tables import WatchedTable
from freshet.log import Limits, Log, LogReader, StoredVersion
from freshet.model import ARRIVAL, UserError, parse_schema, version_stream

SCHEMA = "host string, owner string"


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    return write(tmp_path / "hosts.csv", "host,owner\na,ann\n")


def write(path: Path, text: str) -> Path:
    """Changes a file as one should: another one is put in its place."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)
    return path


def declared(file: Path, **options: Any) -> App:
    app = App("shop")
    app.stream("packets", "host string, size int")
    app.table("hosts", file, schema=SCHEMA, **options)
    app.query("owned", "SELECT owner, size FROM packets p JOIN hosts h ON p.host = h.host")
    return app


def problems(app: App) -> list[str]:
    with pytest.raises(InvalidApp) as caught:
        app.check()
    return [problem.line() for problem in caught.value.problems]


# Checks


def test_a_table_that_is_right(hosts: Path) -> None:
    assert declared(hosts).check() == []


def test_a_table_that_nobody_joins_with_is_a_note(hosts: Path) -> None:
    app = declared(hosts)
    app.table("spare", hosts, schema="owner string")
    assert app.check() == ["tables.spare: no query joins with it"]


def test_a_file_must_be_there_and_fit(tmp_path: Path, hosts: Path) -> None:
    assert problems(declared(tmp_path / "none.csv")) == [f"tables.hosts.file: there is no file {tmp_path / 'none.csv'}"]
    write(hosts, "host,wner\na,ann\n")
    assert problems(declared(hosts)) == [f"tables.hosts.file: {hosts} has no column owner: it has host, wner"]
    odd = write(tmp_path / "hosts.txt", "host,owner\n")
    assert "tables.hosts.file" in problems(declared(odd))[0]
    assert declared(odd, format="csv").check() == []
    assert problems(declared(odd, format="xml")) == [
        "tables.hosts.format: format 'xml' is not known: use one of csv, json, parquet"
    ]


def test_names_are_taken_once(hosts: Path) -> None:
    app = declared(hosts)
    with pytest.raises(UserError, match="there is a stream packets already"):
        app.table("Packets", hosts, schema=SCHEMA)
    with pytest.raises(UserError, match="there is a query owned already"):
        app.table("owned", hosts, schema=SCHEMA)
    for declare in (app.stream, app.query):
        with pytest.raises(UserError, match="there is a table hosts already"):
            declare("hosts", "host string")
    with pytest.raises(UserError, match="table t: schema 'a inth' is not Spark DDL"):
        app.table("t", hosts, schema="a inth")


def test_a_table_is_not_selected_from(hosts: Path) -> None:
    app = declared(hosts)
    app.query("all", "SELECT * FROM hosts")
    assert "hosts is a table: a continuous query reads a stream" in problems(app)[0]


def test_what_is_computed_of_a_table_first_is_compiled(hosts: Path) -> None:
    app = declared(hosts)
    app.query("odd", "SELECT size FROM packets p JOIN hosts h ON initcap(p.host) = initcap(h.host)")
    assert "queries.odd.sql: function initcap is not compiled" in problems(app)[0]


def test_a_file_declares_tables(tmp_path: Path, hosts: Path) -> None:
    path = tmp_path / "app.toml"
    path.write_text(
        '[streams.packets]\nschema = "host string, size int"\n'
        '[tables.hosts]\nfile = "hosts.csv"\nschema = "host string, owner string"\n'
        '[queries.owned]\nsql = "SELECT owner FROM packets p JOIN hosts h ON p.host = h.host"\n'
    )
    app = App.from_toml(path)
    assert app.check() == []
    assert app.tables["hosts"].file == hosts


def test_all_that_is_wrong_in_a_file_is_said_at_once(tmp_path: Path, hosts: Path) -> None:
    path = tmp_path / "app.toml"
    path.write_text(
        '[streams.s]\nschema = "v int"\n'
        '[tables.none]\nschema = "a int"\n'
        '[tables.s]\nfile = "hosts.csv"\nschema = "host string"\n'
        '[tables.odd]\nfile = "hosts.csv"\nschema = "host strng"\nformt = "csv"\n'
        '[queries.q]\nsql = "SELECT v FROM s JOIN none ON v = a"\n'
        '[queries.r]\nsql = "SELECT w FROM s"\n'
    )
    with pytest.raises(InvalidApp) as caught:
        App.from_toml(path)
    places = [problem.place for problem in caught.value.problems]
    assert places == ["tables.none", "tables.odd.formt", "tables.s", "tables.odd", "queries.r.sql"]


# Looking at the file


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        yield log


def look(table: WatchedTable) -> None:
    """As often as it takes to see that nobody is writing the file any more."""
    for _ in range(2):
        table.look()


def test_a_changed_file_becomes_a_version(log: Log, hosts: Path) -> None:
    table = WatchedTable(log, TableSpec("hosts", hosts, parse_schema(SCHEMA)))
    look(table)
    assert (table.status["versions"], table.status["rows"], table.status["error"]) == (1, 1, None)
    write(hosts, "host,owner\na,ann\nb,bob\n")
    table.look()
    assert table.status["versions"] == 1, "somebody may still be writing"
    table.look()
    assert (table.status["versions"], table.status["rows"], table.status["kept"]) == (2, 2, 2)
    os.utime(hosts)
    look(table)
    assert table.status["versions"] == 2, "the content is the same"


def test_a_file_that_cannot_be_read_leaves_the_table_as_it_was(
    log: Log, hosts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = WatchedTable(log, TableSpec("hosts", hosts, parse_schema(SCHEMA)))
    write(hosts, "host\nb\n")
    for _ in range(3):
        look(table)
    assert table.status["versions"] == 1
    assert "has no column owner" in (table.error or "")
    assert len([record for record in caplog.records if "stays as it was" in record.message]) == 1
    hosts.unlink()
    look(table)
    assert "there is no file" in (table.error or "")
    write(hosts, "host,owner\nb,bob\n")
    look(table)
    assert (table.error, table.status["versions"]) == (None, 2)


def test_a_first_version_is_needed(log: Log, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        WatchedTable(log, TableSpec("hosts", tmp_path / "none.csv", parse_schema(SCHEMA)))


def test_a_file_that_changed_between_runs_is_a_new_version(log: Log, hosts: Path) -> None:
    spec = TableSpec("hosts", hosts, parse_schema(SCHEMA))
    WatchedTable(log, spec)
    write(hosts, "host,owner\nb,bob\n")
    assert WatchedTable(log, spec).status["versions"] == 2
    assert WatchedTable(log, spec).status["versions"] == 2


# On Spark

QUERIES = {
    "named": (
        "SELECT a.k, a.v, w FROM a JOIN names n ON a.k = n.k WHERE a.v > 2",
        "SELECT a.k, v, w FROM a JOIN names n ON {as_of} AND a.k = n.k WHERE v > 2",
    ),
    "maybe": (
        "SELECT a.v, w FROM a LEFT JOIN names n ON a.k = n.k AND w > 3",
        "SELECT v, w FROM a LEFT JOIN names n ON {as_of} AND a.k = n.k AND w > 3",
    ),
    # In stages: initcap is not compiled.
    "shown": (
        "SELECT initcap(n.name) AS name, a.v FROM a JOIN names n ON a.k = n.k AND a.v > w",
        "SELECT upper(left(name, 1)) || substr(name, 2), v FROM a JOIN names n ON {as_of} AND a.k = n.k AND v > w",
    ),
    "sums": (
        "SELECT w, sum(v) AS s, window_end AS e FROM a [RANGE 30 SECONDS SLIDE 10 SECONDS] JOIN names n ON a.k = n.k "
        "GROUP BY w",
        """SELECT w, sum(v), b FROM a JOIN names n ON {as_of} AND a.k = n.k,
        (SELECT TIMESTAMP '2024-01-01 12:00:00' + i * INTERVAL 10 SECOND AS b FROM range(-10, 100) AS r(i))
        WHERE ts < b AND b <= ts + INTERVAL 30 SECOND AND b <= TIMESTAMP '2024-01-01 12:09:50' GROUP BY w, b""",
    ),
    "groups": (
        "SELECT c.k, n, w FROM (SELECT k, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k) c "
        "JOIN names m ON c.k = m.k",
        """SELECT a.k, a.n, w FROM (
            SELECT k, count(*) AS n, max(came) AS came FROM a WHERE ts < TIMESTAMP '2024-01-01 12:09:50'
            GROUP BY k, time_bucket(INTERVAL 10 SECOND, ts)
        ) a JOIN names n ON {as_of} AND a.k = n.k""",
    ),
}
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def make_app(folder: Path) -> App:
    app = App("tables", state=folder / "state")
    app.stream("a", "ts timestamp, k int, v int", event_time="ts", lateness="0 s")
    app.table("names", folder / "names.jsonl", schema="k int, name string, w int")
    for name, (sql, _) in QUERIES.items():
        app.query(name, sql)
    return app


def put_names(folder: Path, rng: random.Random) -> None:
    rows = [{"k": rng.randrange(4), "name": rng.choice(["ann", "bob"]), "w": rng.randrange(9)} for _ in range(5)]
    rows.append({"k": 9, "name": "who", "w": rng.randrange(10**9)})  # so that the content is new
    write(folder / "names.jsonl", "\n".join(map(json.dumps, rows)))


@pytest.mark.spark
def test_tables_answer_as_the_whole_log_does(tmp_path: Path) -> None:
    rng = random.Random(11)
    put_names(tmp_path, rng)
    rows = [
        {"ts": NOON + dt.timedelta(seconds=place), "k": rng.choice([0, 1, 2, 3, None]), "v": rng.randrange(9)}
        for place in range(600)
    ]
    for half in (rows[:300], rows[300:]):
        with make_app(tmp_path).start() as run:
            for first in range(0, len(half), 100):
                run.push("a", half[first : first + 100])
                change(tmp_path, rng, run)
            assert run.drain()
            report = run.report()["tables"]["names"]
            assert (report["error"], report["rows"]) == (None, 6)
            assert run.read("names").num_rows == 6
            answers = {name: Counter(map(_plain, run.read(name).to_pylist())) for name in QUERIES}
        put_names(tmp_path, rng)  # while it does not run
    expected = duck(tmp_path / "state")
    for name in QUERIES:
        assert answers[name] == expected[name], name


def change(folder: Path, rng: random.Random, run: Any) -> None:
    """Changes the file and waits until that is in the log."""
    before = run.report()["tables"]["names"]["versions"]
    put_names(folder, rng)
    until = time.monotonic() + 600
    while run.report()["tables"]["names"]["versions"] == before:
        assert time.monotonic() < until
        time.sleep(0.05)


def duck(state: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    """The answers over what is in the log: all is younger than its retention."""
    with LogReader(state) as reader, duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("a_", reader.read("a", 0, reader.end("a")))
        connection.execute(f"CREATE VIEW a AS SELECT ts::TIMESTAMP AS ts, k, v, {ARRIVAL} AS came FROM a_")
        stream = version_stream("names")
        segments = reader.train(stream, 0, reader.end(stream)).segments
        connection.register("names", versions_of(state / "segments", segments))
        as_of = "n.since <= a.came AND a.came < n.till"
        texts = {name: sql.format(as_of=as_of) for name, (_, sql) in QUERIES.items()}
        return {name: Counter(connection.execute(text).fetchall()) for name, text in texts.items()}


def versions_of(folder: Path, segments: Sequence[Any]) -> pa.Table:
    tables = []
    for place, segment in enumerate(segments):
        rows = StoredVersion(folder, segment).read()
        till = segments[place + 1].arrival if place + 1 < len(segments) else 2**62
        rows = rows.append_column("since", pa.array([segment.arrival] * len(rows), pa.int64()))
        tables.append(rows.append_column("till", pa.array([till] * len(rows), pa.int64())))
    assert len(tables) == 8, "one at the first start, one between the runs, three in each"
    return pa.concat_tables(tables)


def _plain(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value for value in row.values())
