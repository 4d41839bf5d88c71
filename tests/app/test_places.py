"""Applications between files, databases and Spark's own sources."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from freshet.app import App, InvalidApp

FILE = """
[app]
name = "places"
[spark]
master = "local[2]"
[streams.orders]
schema = "ts timestamp, shop string, amount int"
event_time = "ts"
lateness = "1 minute"
source = {source}
[queries.large]
sql = "SELECT shop, amount FROM orders WHERE amount >= 50"
sinks = [{{kind = "parquet", path = "large"}}, {{kind = "table", path = "out.db", table = "newest", keys = ["shop"]}}]
"""
FILES = '{kind = "files", path = "in", settle = 0, follow = false}'
SPARK = (
    '{kind = "spark", format = "json", schema = "ts timestamp, shop string, amount string", follow = false,'
    ' options = {path = "IN", maxFilesPerTrigger = 1}}'
)


def put(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    rows = [
        {"ts": f"2024-01-01T00:00:{number:02}Z", "shop": f"s{value % 3}", "amount": value}
        for value in range(number * 20, number * 20 + 20)
    ]
    path = folder / "in" / f".{number}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path.rename(folder / "in" / f"{number}.json")


def outcome(folder: Path) -> tuple[list[int], dict[str, int]]:
    files = pyarrow.dataset.dataset(folder / "large").to_table()
    with closing(sqlite3.connect(folder / "out.db")) as database:
        table = dict(database.execute("SELECT shop, amount FROM newest").fetchall())
    return sorted(files["amount"].to_pylist()), table


@pytest.mark.spark
@pytest.mark.parametrize("source", [FILES, SPARK], ids=["files", "spark"])
def test_from_files_to_parquet_and_a_table_over_restarts(spark: Any, tmp_path: Path, source: str) -> None:
    path = tmp_path / "app.toml"
    path.write_text(FILE.format(source=source.replace("IN", str(tmp_path / "in"))))
    for number in range(3):
        put(tmp_path, number)
    report = App.from_toml(path).run()
    assert report["sources"]["orders"]["state"] == "stopped"
    assert outcome(tmp_path) == ([*range(50, 60)], {"s0": 57, "s1": 58, "s2": 59})
    for number in range(3, 5):
        put(tmp_path, number)
    App.from_toml(path).run()
    assert outcome(tmp_path) == ([*range(50, 100)], {"s0": 99, "s1": 97, "s2": 98})
    # The state is gone and the output is not: nobody could tell which rows are there.
    (tmp_path / "state").rename(tmp_path / "old")
    with pytest.raises(InvalidApp) as caught:
        App.from_toml(path).run()
    lines = [problem.line("") for problem in caught.value.problems]
    assert len(lines) == 2
    assert "queries.large.sinks[0].path: folder" in lines[0]
    assert "queries.large.sinks[1].table: table newest of" in lines[1]
