"""Tables that are mirrors: versions follow what polls find."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.sources.mirror.test_mirror import options, price
from tests.sources.mirror.web import Web

from freshet import App
from freshet.app.declared.problems import InvalidApp
from freshet.app.running.mirrored import MirroredTable
from freshet.log import Log
from freshet.model import ARRIVAL

SCHEMA = "element string, price double"


def declared(web: Web, *names: str, schema: str = SCHEMA, **more: Any) -> App:
    app = App("shop", state=Path("unused"), report=None)
    app.stream("orders", "item string")
    app.table("prices", schema=schema, source={"kind": "mirror", **options(web, *names, **more)})
    app.query("priced", "SELECT o.item, p.price FROM orders o JOIN prices p ON o.item = p.element")
    return app


def looked(table: MirroredTable, until: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not until():
        table.look()
        assert time.monotonic() < end, table.status
        time.sleep(0.02)


def content(table: MirroredTable) -> list[tuple[str, float]]:
    newest = table.versions.newest()
    return [] if newest is None else [(row["element"], row["price"]) for row in newest.to_pylist()]


def test_versions_follow_the_elements_over_restarts(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    spec = declared(web, "a", "b").tables["prices"]
    with Log.open(tmp_path) as log:
        table = MirroredTable(log, spec)
        assert content(table) == []
        looked(table, lambda: content(table) == [("a", 1.0), ("b", 2.0)])
        web.pages["/b"] = price(3)
        looked(table, lambda: content(table) == [("a", 1.0), ("b", 3.0)])
        web.pages["/a"] = price("cheap")
        looked(table, lambda: table.error is not None)
        assert content(table) == [("a", 1.0), ("b", 3.0)], "what does not fit changes nothing"
        table.close()
    first = len(web.requests)
    with Log.open(tmp_path) as log:
        table = MirroredTable(log, spec)
        assert content(table) == [("a", 1.0), ("b", 3.0)]
        versions = table.versions.number
        looked(table, lambda: table.source.status.polls > first + 20)
        assert table.versions.number == versions, "what is known already is no new version"
        table.close()
    assert all("If-None-Match" in headers for _, _, headers in web.requests[first:])


def test_an_element_that_is_gone_takes_its_rows_with_it(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    with Log.open(tmp_path) as log:
        table = MirroredTable(log, declared(web, "a", "b").tables["prices"])
        looked(table, lambda: len(content(table)) == 2)
        table.close()
    with Log.open(tmp_path) as log:
        table = MirroredTable(log, declared(web, "b").tables["prices"])
        looked(table, lambda: content(table) == [("b", 2.0)])
        table.close()


def test_a_query_names_the_elements_of_a_table(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    spec = declared(web, elements={"query": "priced", "column": "item"}).tables["prices"]
    with Log.open(tmp_path) as log:
        log.declare("priced", kind="output")
        table = MirroredTable(log, spec)
        log.append("priced", pa.table({"item": ["a"], ARRIVAL: [1]}))
        looked(table, lambda: content(table) == [("a", 1.0)])
        log.append("priced", pa.table({"item": ["b"], ARRIVAL: [1]}))
        looked(table, lambda: content(table) == [("a", 1.0), ("b", 2.0)])
        table.close()


def test_other_columns_begin_anew(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": b'{"price": 1, "stock": 5}'}
    with Log.open(tmp_path) as log:
        table = MirroredTable(log, declared(web, "a").tables["prices"])
        looked(table, lambda: content(table) == [("a", 1.0)])
        table.close()
    with Log.open(tmp_path) as log:
        table = MirroredTable(log, declared(web, "a", schema=f"{SCHEMA}, stock int").tables["prices"])

        def rows() -> list[dict[str, Any]]:
            newest = table.versions.newest()
            return [] if newest is None else newest.to_pylist()

        looked(table, lambda: rows() == [{"element": "a", "price": 1.0, "stock": 5}])
        table.close()


def test_a_table_needs_the_column_of_its_elements(web: Web) -> None:
    with pytest.raises(InvalidApp, match="needs a column element of type string"):
        declared(web, "a", schema="item string, price double").check()


def test_a_table_has_a_file_or_a_mirror(tmp_path: Path) -> None:
    file = tmp_path / "app.toml"
    file.write_text('[streams.s]\nschema = "v int"\n[tables.t]\nschema = "k string"\n')
    with pytest.raises(InvalidApp, match="needs either a file or a source"):
        App.from_toml(file)
    file.write_text('[streams.s]\nschema = "v int"\n[tables.t]\nschema = "k string"\nsource = {kind = "push"}\n')
    with pytest.raises(InvalidApp, match="must be of kind mirror"):
        App.from_toml(file).check()
