"""Elements that are files or rows of databases, and elements that queries name."""

from __future__ import annotations

import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.sinks.conftest import postgres as postgres
from tests.sources.mirror.feeding import feeding, stream
from tests.sources.mirror.test_mirror import options, price
from tests.sources.mirror.web import Web

from freshet.model import ARRIVAL, UserError
from freshet.sources import create
from freshet.sources.mirror.polling.file import FileFetcher
from freshet.sources.mirror.source import MirrorSource

QUERY = "SELECT price FROM items WHERE name = ?"
KEY = "SELECT version FROM items WHERE name = ?"


def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text("price,other\n1.5,x\n2.5,y\n")
    given = {"elements": ["a.csv", "b.csv"], "file": {"path": str(folder)}, "format": "csv", "budget": 50.0,
             "change_every": 0.5, "back_off": 0.1}  # fmt: skip
    with feeding(tmp_path / "state", given) as fed:
        fed.until(lambda: fed.values() == [("a.csv", 1.5), ("a.csv", 2.5)] and fed.source.status.failing == 1)
        (folder / "b.csv").write_text("price\n9\n")
        fed.until(lambda: fed.values()[2:] == [("b.csv", 9.0)])
        (folder / "new").write_text("price\n3\n")
        before = time.time()
        os.replace(folder / "new", folder / "a.csv")
        fed.until(lambda: len(fed.rows()) == 4)
        last = fed.rows()[-1]
        assert (last["element"], last["price"]) == ("a.csv", 3.0)
        assert last["changed"].timestamp() == pytest.approx(before, abs=1.0), "the file says when it changed"


def test_a_file_that_is_written_twice_at_the_same_time_is_read_twice(tmp_path: Path) -> None:
    """File systems have clocks with steps, so a second change may leave time and size as they were."""
    file, fetcher = tmp_path / "a", FileFetcher(tmp_path, ThreadPoolExecutor(1))
    for content in (b"old", b"new"):
        file.write_bytes(content)
        os.utime(file, (moment := time.time(), moment))
    first = fetcher.read(file, {})
    stamp = file.stat()
    file.write_bytes(b"NEW")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert fetcher.read(file, first.validator).content == b"NEW"
    os.utime(file, (1e9, 1e9))
    old = fetcher.read(file, {})
    assert fetcher.read(file, old.validator).same


def test_a_path_must_not_leave_the_folder(tmp_path: Path) -> None:
    given = {"elements": ["../secret.csv"], "file": {"path": str(tmp_path)}, "budget": 1.0}
    source = create("mirror", given, stream())
    assert isinstance(source, MirrorSource)
    with pytest.raises(UserError, match="is not in"):
        source.check()
    source.close()


def sql(database: str, **more: Any) -> dict[str, Any]:
    return {"elements": ["x", "y"], "sql": {"database": database, "query": QUERY, **more}, "budget": 50.0,
            "change_every": 0.5, "back_off": 0.1}  # fmt: skip


def test_sqlite_with_a_change_key(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE items (name TEXT, price REAL, version INTEGER)")
        database.executemany("INSERT INTO items VALUES (?, ?, ?)", [("x", 1.0, 1), ("y", 2.0, 1)])
    with feeding(tmp_path / "state", sql(str(path), change_key=KEY)) as fed:
        fed.until(lambda: sorted(fed.values()) == [("x", 1.0), ("y", 2.0)])
        with sqlite3.connect(path) as database:
            # The key says that nothing has changed, so nobody looks.
            database.execute("UPDATE items SET price = 7 WHERE name = 'x'")
            database.execute("UPDATE items SET price = 8, version = 2 WHERE name = 'y'")
        fed.until(lambda: fed.values()[2:] == [("y", 8.0)])
        before = fed.source.status.polls
        fed.until(lambda: fed.source.status.polls >= before + 10)
        assert len(fed.rows()) == 3


def test_a_wrong_statement_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    sqlite3.connect(path).execute("CREATE TABLE other (x)")
    with feeding(tmp_path / "state", sql(str(path))) as fed:
        fed.until(lambda: fed.source.status.failing == 2)
        assert "no such table: items" in fed.source.status.failing_examples["x"]


def test_postgres(tmp_path: Path, postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as database:
        database.execute("CREATE TABLE items (name text, price numeric, version timestamptz)")
        database.execute("INSERT INTO items VALUES ('x', 1, now() - interval '1 hour'), ('y', 2, now())")
        with feeding(tmp_path, sql(postgres, change_key=KEY)) as fed:
            fed.until(lambda: sorted(fed.values()) == [("x", 1.0), ("y", 2.0)])
            database.execute("UPDATE items SET price = 3, version = now() WHERE name = 'x'")
            fed.until(lambda: fed.values()[2:] == [("x", 3.0)])
            last = fed.rows()[-1]
            (changed,) = database.execute("SELECT version FROM items WHERE name = 'x'").fetchone() or (None,)
            assert last["changed"] == changed, "the key is a time, so it tells when"


def test_a_query_names_elements(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    given = options(web, elements={"query": "found", "column": "url"}, http={"hosts": [web.host]})
    with feeding(tmp_path, given) as fed:
        fed.log.declare("found", kind="output")

        def add(*urls: str) -> None:
            fed.log.append("found", pa.table({"url": list(urls), ARRIVAL: [1] * len(urls)}))

        add(f"{web.address}/a", "http://elsewhere.invalid/x")
        fed.until(lambda: len(fed.rows()) == 1 and fed.feeder.status.dead == 1)
        add(f"{web.address}/b", f"{web.address}/a")
        fed.until(lambda: len(fed.rows()) == 2 and fed.source.status.elements == 2)
    with feeding(tmp_path, given) as fed:
        fed.until(lambda: fed.source.status.elements == 2)
        before = fed.source.status.polls
        fed.until(lambda: fed.source.status.polls >= before + 10)
        assert len(fed.rows()) == 2
        assert fed.feeder.status.dead == 0, "a row of the query is read once"
