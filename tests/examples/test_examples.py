"""Every example runs as a user would run it, on Spark, and gives the answers that its input asks for."""

from __future__ import annotations

import itertools
import json
import re
import runpy
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import freshet
from freshet.log import LogReader

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*/*.toml"))

Rows = list[dict[str, Any]]


def run_example(name: str, folder: Path) -> dict[str, Rows]:
    """Runs a copy of an example until its sources have ended; returns the rows of its streams and queries."""
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("state", "out", "report.json"))
    app = freshet.App.from_toml(folder / f"{name}.toml")
    report = app.run(master="local[2]")
    assert {query["state"] for query in report["queries"].values()} == {"active"}
    with LogReader(app.state) as log:
        names = [*app.streams, *app.queries]
        return {each: log.read(each, log.oldest(each), log.end(each)).to_pylist() for each in names}


def picked(rows: Rows, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def test_the_list_names_every_example() -> None:
    listed = re.findall(r"^\| \[\w+\]\((\S+)\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert len(listed) >= 5
    programs = [EXAMPLES / "orders/orders.py", EXAMPLES / "prices/prices.py"]
    assert sorted(listed) == sorted(str(file.relative_to(EXAMPLES)) for file in [*FILES, *programs])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_right_where_it_lies(file: Path) -> None:
    assert freshet.App.from_toml(file).check() == []


@pytest.mark.spark
def test_network(tmp_path: Path) -> None:
    rows = run_example("network", tmp_path / "network")
    packets = picked(rows["packets"], "host", "port", "size")
    assert len(packets) == 4000
    doors = [(host, port) for host, port, _ in packets if port in (22, 23)]
    assert picked(rows["doors"], "host", "port") == doors
    intruders = [(host,) for host, port in doors if port == 23 and host != "alpha"]
    assert intruders
    assert picked(rows["intruders"], "host") == intruders
    lines = (tmp_path / "network/out/intruders.jsonl").read_text().splitlines()
    assert picked([json.loads(line) for line in lines], "host") == intruders
    large = [(host, size, pytest.approx(size / 1500, abs=0.006)) for host, _, size in packets if size > 1400]
    assert picked(rows["large"], "host", "size", "fill") == large
    assert len(rows["web"]) == sum(port in (80, 443) for _, port, _ in packets)


@pytest.mark.spark
def test_orders() -> None:
    found = runpy.run_path(str(EXAMPLES / "orders/orders.py"))["main"]()
    assert picked(found["paid"], "id", "customer", "method") == [(1, "ada", "card")]
    assert picked(sorted(found["unpaid"], key=lambda row: row["id"]), "id", "customer") == [(2, "bob"), (3, "cy")]


@pytest.mark.spark
def test_forex(tmp_path: Path) -> None:
    rows = run_example("forex", tmp_path / "forex")
    candles = [
        (row["pair"], row["window_start"].second, row["low"], row["high"], round(row["spread"], 6), row["ticks"])
        for row in sorted(rows["candles"], key=lambda row: (row["window_start"], row["pair"]))
        if row["window_start"].second < 30  # the last one is still open
    ]
    assert candles == [
        ("EURUSD", 0, 1.069, 1.071, 0.0002, 3),
        ("GBPUSD", 0, 1.25, 1.252, 0.0003, 2),
        ("EURUSD", 10, 1.072, 1.073, 0.0004, 2),
        ("GBPUSD", 10, 1.249, 1.249, -0.001, 1),
        ("EURUSD", 20, 1.0725, 1.0725, 0.0002, 1),
    ]
    moving = [row["mean"] for row in rows["moving"] if row["pair"] == "GBPUSD"]
    assert moving == pytest.approx([1.25, 1.251, (1.25 + 1.252 + 1.249) / 3])
    with sqlite3.connect(tmp_path / "forex/out/forex.db") as database:
        latest = database.execute("SELECT pair, bid FROM latest ORDER BY pair").fetchall()
    assert latest == [("EURUSD", 1.074), ("GBPUSD", 1.252)], "the last tick of GBPUSD is crossed, and left out"


@pytest.mark.spark
def test_sensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = run_example("sensors", tmp_path / "sensors")
    assert picked(rows["warm"], "room", "mean") == [
        ("south", pytest.approx(9.3)),
        ("south", pytest.approx(9.9)),
        ("south", pytest.approx(10.5)),
    ]
    assert picked(rows["alerts"], "room") == [("south",)], "once, not three times"
    assert picked(rows["broken"], "room", "celsius") == [("south", None), ("north", -127.0)]
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ALERT")]
    assert told == ["ALERT 0: south is too warm"]


@pytest.mark.spark
def test_weblog(tmp_path: Path) -> None:
    rows = run_example("weblog", tmp_path / "weblog")
    errors = [("/shop/pay", 503, "checkout"), ("/search/new", 500, "discovery"), ("/old/page", 502, "nobody")]
    assert picked(rows["errors"], "path", "status", "team") == errors
    assert picked(pq.read_table(tmp_path / "weblog/out/errors").to_pylist(), "path", "status", "team") == errors
    assert picked(rows["odd"], "host", "path") == [("10.0.0.4", "/shop/cart")]
    assert picked(rows["requests"], "method", "section")[1] == ("POST", "shop")


@pytest.mark.spark
def test_prices() -> None:
    names = runpy.run_path(str(EXAMPLES / "prices/prices.py"))
    found = names["main"]()
    archive = picked(found["archive"], "element", "price")
    assert {item for item, _ in archive} == set(names["HOLDS"]), "every item was polled"
    for item in names["HOLDS"]:
        prices = [price for element, price in archive if element == item]
        assert all(one != two for one, two in itertools.pairwise(prices)), "a row is a change"
        assert set(prices) <= {round(names["price"](item, number), 2) for number in range(100)}
    breakfast = [(item, price) for item, price in archive if item in ("coffee", "milk")]
    assert picked(found["breakfast"], "element", "price") == breakfast
    told = found["mirror"]
    assert told["changes"] >= names["CHANGES"]
    assert told["budget_used"] <= 1.02
    assert told["failing_examples"] == {"gone": "404 Not Found"}
