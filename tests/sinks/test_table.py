import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sinks.kit import kill_and_finish

from freshet.model import UserError
from freshet.sinks import TableOptions, TableSink, Token, create

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])


def table(*rows: tuple[str | None, int]) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], SCHEMA)


def sink(path: Path, **options) -> TableSink:
    return TableSink(TableOptions.model_validate({"path": path, "table": "t"} | options))


def found(path: Path, query: str = "SELECT k, v FROM t ORDER BY rowid") -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_rows_are_added_and_the_progress_stands_beside_them(tmp_path):
    path = tmp_path / "deep" / "out.db"
    made = sink(path)
    state = made.open({})
    assert made.write(table(("a", 1), ("b", 2)), Token("q", 0, 2)) == state
    # The process died before the cursor was moved: the rows come again, and more of them.
    made = sink(path)
    made.open(state)
    made.write(table(("a", 1), ("b", 2), ("c", 3)), Token("q", 0, 3))
    made.write(table(("c", 3)), Token("q", 2, 3))
    made.close()
    assert found(path) == [("a", 1), ("b", 2), ("c", 3)]
    assert found(path, "SELECT target, sink, query, next FROM freshet_progress") == [("t", state["id"], "q", 3)]


def test_rows_replace_those_with_the_same_keys(tmp_path):
    path = tmp_path / "out.db"
    made = sink(path, keys=["k"])
    made.open({})
    made.write(table(("a", 1), ("b", 2), ("a", 3)), Token("q", 0, 3))
    made.write(table(("b", 4), (None, 5), (None, 6)), Token("q", 3, 6))
    made.close()
    assert sorted(found(path), key=lambda row: row[1]) == [("a", 3), ("b", 4), (None, 5), (None, 6)]


def test_keys_alone(tmp_path):
    path = tmp_path / "out.db"
    made = sink(path, keys=["v", "k"])
    made.open({})
    made.write(table(("a", 1), ("a", 1), ("a", 2)), Token("q", 0, 3))
    made.close()
    assert found(path) == [("a", 1), ("a", 2)]


def test_a_transaction_that_fails_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "out.db"
    made = sink(path)
    state = made.open({})

    def fail(*arguments: object) -> None:
        raise RuntimeError("the power goes")

    monkeypatch.setattr(made, "_set_next", fail)
    with pytest.raises(RuntimeError, match="the power goes"):
        made.write(table(("a", 1)), Token("q", 0, 1))
    monkeypatch.undo()
    assert found(path, "SELECT count(*) FROM sqlite_master WHERE name = 't'") == [(0,)]
    made.open(state)
    made.write(table(("a", 1)), Token("q", 0, 1))
    made.close()
    assert found(path) == [("a", 1)]


@given(ends=st.lists(st.integers(1, 10), min_size=1, max_size=6), data=st.data())
@settings(max_examples=30, deadline=None)
def test_what_comes_again_is_not_written_again(tmp_path_factory, ends, data):
    path = tmp_path_factory.mktemp("out") / "out.db"
    state: dict[str, Any] = {}
    cursor = log_end = 0
    for rows in ends:
        log_end += rows
        made = sink(path)
        opened = made.open(state)
        end = data.draw(st.integers(cursor, log_end))
        made.write(table(*(("a", v) for v in range(cursor, end))), Token("q", cursor, end))
        made.close()
        state = opened
        if data.draw(st.booleans()):
            cursor = end
    made = sink(path)
    made.open(state)
    made.write(table(*(("a", v) for v in range(cursor, log_end))), Token("q", cursor, log_end))
    made.close()
    assert [v for _, v in found(path)] == list(range(log_end))


ALL = pa.table(
    {
        "flag": pa.array([True, None]),
        "small": pa.array([-128, None], pa.int8()),
        "big": pa.array([2**63 - 1, -(2**63)], pa.int64()),
        "x": pa.array([0.1, float("inf")], pa.float64()),
        "text": pa.array(["a'\"%s?", ""], pa.string()),
        "raw": pa.array([b"\x00\xff", None], pa.binary()),
        "price": pa.array([Decimal("12345678901234567890.123"), None], pa.decimal128(23, 3)),
        "day": pa.array([date(2024, 2, 29), None], pa.date32()),
        "ts": pa.array([datetime(2024, 1, 1, 12, 30, 0, 123456, UTC), None], pa.timestamp("us", tz="UTC")),
        "local": pa.array([datetime(2024, 1, 1, 12, 30), None], pa.timestamp("us")),
        "many": pa.array([[1, 2], None], pa.list_(pa.int32())),
        "who": pa.array([{"name": "x", "at": None}, None], pa.struct([("name", pa.string()), ("at", pa.date32())])),
        'odd "name" %s?': pa.array([1, 2], pa.int32()),
    }
)


def test_every_type_in_sqlite(tmp_path):
    path = tmp_path / "out.db"
    made = sink(path)
    made.open({})
    made.write(ALL, Token("q", 0, 2))
    made.close()
    assert found(path, "SELECT * FROM t") == [
        (1, -128, 2**63 - 1, 0.1, "a'\"%s?", b"\x00\xff", "12345678901234567890.123", "2024-02-29",
         "2024-01-01T12:30:00.123456Z", "2024-01-01T12:30:00.000000", "[1, 2]", '{"name": "x", "at": null}', 1),
        (None, None, -(2**63), float("inf"), "", None, None, None, None, None, None, None, 2),
    ]  # fmt: skip


def test_a_table_with_rows_of_others_is_refused(tmp_path):
    path = tmp_path / "out.db"
    made = sink(path)
    state = made.open({})
    made.write(table(("a", 1)), Token("q", 0, 1))
    made.close()
    other = sink(path)
    assert sink(path).refusal(state) is None
    assert sink(tmp_path / "new.db").refusal({}) is None
    assert not (tmp_path / "new.db").exists()
    message = r"table t of .*out\.db holds rows already, and this sink did not write them: choose another table, empty"
    with pytest.raises(UserError, match=message):
        other.open({})
    assert other.refusal({}) is not None
    other = sink(path, append=True)
    other.open({})
    other.write(table(("b", 2)), Token("q", 0, 1))
    other.close()
    assert found(path) == [("a", 1), ("b", 2)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE made (v, k, more)")
    mine = sink(path, table="made")
    mine.open({})
    mine.write(table(("c", 3)), Token("q", 0, 1))
    mine.close()
    assert found(path, "SELECT v, k, more FROM made") == [(3, "c", None)]


def test_a_table_that_does_not_fit(tmp_path):
    path = tmp_path / "out.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (k)")
        connection.execute("CREATE TABLE plain (k, v)")
    made = sink(path)
    made.open({})
    with pytest.raises(UserError, match=r"table t of .* has no column v: add it, or choose another table"):
        made.write(table(("a", 1)), Token("q", 0, 1))
    made = sink(path, table="plain", keys=["k"])
    made.open({})
    with pytest.raises(UserError, match="table plain needs a unique index over its keys: k"):
        made.write(table(("a", 1)), Token("q", 0, 1))
    made = sink(path, table="new", keys=["id"])
    made.open({})
    with pytest.raises(UserError, match=r"keys: the query has no column id \(it has: k, v\)"):
        made.write(table(("a", 1)), Token("q", 0, 1))
    (tmp_path / "text.db").write_text("this is no database, however long its text may be")
    with pytest.raises(UserError, match=r"database .*text\.db cannot be opened: file is not a database"):
        sink(tmp_path / "text.db").open({})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give the path of an SQLite database or the url of a PostgreSQL one"),
        ({"path": "a.db", "url": "postgresql://h/d"}, ""),
        ({"url": "mysql://h/d"}, r"url: must begin with postgresql:// \(for an SQLite database give its path\)"),
        ({"path": "a.db", "keys": ["k", "k"]}, "keys: a column appears twice"),
        ({"path": "a.db", "table": "freshet_progress"}, "table: freshet_progress is kept for the progress of sinks"),
        ({"path": "a.db", "table": ""}, "table: "),
        ({"path": "a.db", "key": "k"}, "key is not a known key"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(UserError, match=f"sink table: .*{message}"):
        create("table", {"table": "t"} | options)


def test_postgres_needs_its_extra(monkeypatch):
    monkeypatch.setattr("freshet.sinks.table.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"sink table: url: needs the package psycopg: install freshet\[postgres\]"):
        create("table", {"url": "postgresql://h/d", "table": "t"})


@pytest.mark.parametrize("keys", [[], ["id"]])
def test_sigkill_at_any_moment_leaves_every_row_exactly_once(tmp_path, keys):
    path = tmp_path / "out.db"
    options = {"path": str(path), "table": "t", "keys": keys}
    count = kill_and_finish(tmp_path / "state", "table", options, [1, 1500])
    assert [v for (v,) in found(path, "SELECT id FROM t ORDER BY rowid")] == list(range(count))
    assert found(path, "SELECT next FROM freshet_progress") == [(count,)]


def ask(url: str, query: str) -> list[Any]:
    psycopg = import_module("psycopg")
    with psycopg.connect(url) as connection:
        return list(connection.execute(query).fetchall())


def in_postgres(url: str, name: str, **options) -> TableSink:
    return TableSink(TableOptions.model_validate({"url": url, "table": name} | options))


def test_postgres_adds_rows_once(postgres):
    made = in_postgres(postgres, "public.added")
    state = made.open({})
    made.write(table(("a", 1), ("b", 2)), Token("q", 0, 2))
    made = in_postgres(postgres, "public.added")
    made.open(state)
    made.write(table(("b", 2), ("c", 3)), Token("q", 1, 3))
    assert ask(postgres, "SELECT k, v FROM added ORDER BY v") == [("a", 1), ("b", 2), ("c", 3)]
    with pytest.raises(
        UserError, match=r"table public\.added of postgresql://freshet@/postgres\?\S+ holds rows already"
    ):
        in_postgres(postgres, "public.added").open({})
    # A server that goes away: the runner opens the sink again and hands over the same rows.
    ask(postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(Exception, match=r"terminat|closed"):
        made.write(table(("d", 4)), Token("q", 3, 4))
    made.open(state)
    made.write(table(("d", 4)), Token("q", 3, 4))
    made.close()
    assert ask(postgres, "SELECT max(v), count(*) FROM added") == [(4, 4)]
    assert ask(postgres, "SELECT next FROM freshet_progress WHERE target = 'public.added'") == [(4,)]


def test_postgres_replaces_by_keys(postgres):
    made = in_postgres(postgres, "upserted", keys=["k"])
    made.open({})
    made.write(table(("a", 1), ("b", 2), ("a", 3)), Token("q", 0, 3))
    made.write(table(("b", 4), (None, 5), (None, 6)), Token("q", 3, 6))
    made.close()
    assert ask(postgres, "SELECT k, v FROM upserted ORDER BY v") == [("a", 3), ("b", 4), (None, 5), (None, 6)]


def test_every_type_in_postgres(postgres):
    made = in_postgres(postgres, "every")
    made.open({})
    made.write(ALL, Token("q", 0, 2))
    made.close()
    first, second = ask(postgres, "SELECT * FROM every ORDER BY small NULLS LAST")
    assert first[:8] == (True, -128, 2**63 - 1, 0.1, "a'\"%s?", b"\x00\xff", Decimal("12345678901234567890.123"),
                         date(2024, 2, 29))  # fmt: skip
    assert first[8].astimezone(UTC) == datetime(2024, 1, 1, 12, 30, 0, 123456, UTC)
    assert first[9:] == (datetime(2024, 1, 1, 12, 30), [1, 2], {"name": "x", "at": None}, 1)
    assert second == (None, None, -(2**63), float("inf"), "", None, None, None, None, None, None, None, 2)


def test_postgres_that_is_not_there_is_told_without_a_password():
    pytest.importorskip("psycopg")
    made = in_postgres("postgresql://me:secret@127.0.0.1:1/shop", "t")
    with pytest.raises(
        UserError, match=r"database postgresql://me:\*\*\*@127\.0\.0\.1:1/shop cannot be reached"
    ) as caught:
        made.open({})
    assert "secret" not in str(caught.value)
    assert "cannot be reached" in str(made.refusal({}))


def test_sigkill_at_any_moment_leaves_every_row_exactly_once_in_postgres(postgres, tmp_path):
    options = {"url": postgres, "table": "killed"}
    count = kill_and_finish(tmp_path / "state", "table", options, [1, 1500])
    assert [v for (v,) in ask(postgres, "SELECT id FROM killed ORDER BY id")] == list(range(count))
