"""Periodic queries in a real run: on Spark, by the clock on the wall, and again after a restart."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from freshet import App
from freshet.cli.main import app as command
from freshet.log import LogReader
from freshet.model import ARRIVAL, Instance

QUERIES = {
    "counts": "SELECT k, count(*) AS n FROM s [RANGE 3 s] GROUP BY k PERIOD 1 s",
    "pairs": "SELECT s.k, v, w FROM s [RANGE 2 s], t [RANGE 2 s] WHERE s.k = t.k AND v = w PERIOD 2 s DEADLINE 1 s",
    "last": "SELECT soundex(k) AS sound, v FROM s [ROWS 5] PERIOD 1 s",  # which only Spark computes
}


def declared(state: Path) -> App:
    app = App("periodic", state=state, periodic="edf-fused")
    app.stream("s", "k string, v int")
    app.stream("t", "k string, w int")
    for name, text in QUERIES.items():
        # Executors write the files of a folder that they see, and show hidden columns there.
        sink = {"kind": "parquet", "path": state / name, "arrival": True, "shared": True}
        app.query(name, text, missed="catch-up", sinks=[sink] if name == "counts" else [])
    return app


def feed(app: App, seconds: float, rng: random.Random) -> None:
    with app.start() as run:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for stream, column in (("s", "v"), ("t", "w")):
                run.push(stream, [{"k": rng.choice("ab"), column: rng.randint(0, 3)} for _ in range(rng.randint(1, 5))])
            time.sleep(0.05)
        run.stop()


def window(table: pa.Table, release: int, seconds: int) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    return [row for row in rows if release - seconds * 1_000_000 <= row[ARRIVAL] < release]


def expected(one: Instance, s: pa.Table, t: pa.Table) -> Counter[Any]:
    if one.query == "counts":
        return Counter(Counter(row["k"] for row in window(s, one.release, 3)).items())
    if one.query == "last":
        return Counter([row["v"] for row in s.to_pylist() if row[ARRIVAL] < one.release][-5:])
    pairs = ((a, b) for a in window(s, one.release, 2) for b in window(t, one.release, 2))
    return Counter((a["k"], a["v"], b["w"]) for a, b in pairs if a["k"] == b["k"] and a["v"] == b["w"])


def given(one: Instance, output: pa.Table) -> Counter[Any]:
    rows = output.slice(one.first, one.rows).drop_columns([ARRIVAL]).to_pylist()
    return Counter(row["v"] if one.query == "last" else tuple(row.values()) for row in rows)


@pytest.mark.spark
def test_answers_are_those_of_a_batch_over_the_log_also_after_a_restart(tmp_path: Path) -> None:
    state, rng = tmp_path / "state", random.Random(1)
    feed(declared(state), 6.0, rng)
    feed(declared(state), 3.0, rng)
    with LogReader(state) as log:
        logs = {name: log.read(name, 0, log.end(name)) for name in ("s", "t", *QUERIES)}
        instances = log.instances()
    assert {one.state for one in instances} == {"answered"}
    for name in QUERIES:
        mine = [one for one in instances if one.query == name]
        period = 2_000_000 if name == "pairs" else 1_000_000
        assert {after.release - one.release for one, after in pairwise(mine)} == {period}
        for one in mine:
            assert given(one, logs[name]) == expected(one, logs["s"], logs["t"]), (name, one.release)
    files = pyarrow.parquet.read_table(state / "counts").to_pylist()
    qualities = {one.release: one.quality for one in instances if one.query == "counts"}
    assert len(files) == logs["counts"].num_rows
    for row in files:
        assert row["__quality"] == qualities[row["__arrival"]]
        assert row["__release"].timestamp() * 1e6 == pytest.approx(row["__arrival"])
        assert row["__release"] - row["__window_start"] == timedelta(seconds=3)
    shown = CliRunner().invoke(command, ["read", str(state), "pairs", "--instances", "--as", "jsonl"])
    assert shown.exit_code == 0
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [line["rows"] for line in lines] == [one.rows for one in instances if one.query == "pairs"]
