"""Joins through a shuffle: the same answers as in one task, and as DuckDB's."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from tests.spark.piecewise import answers

from freshet.kernels.folds.join import CompiledJoin
from freshet.model import Stream, parse_schema
from freshet.spark.worker.shuffled import shuffled_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
STREAMS = {
    name: Stream(name, parse_schema(text), event_time="ts", lateness=1)
    for name, text in {
        "a": "ts timestamp, k double, name string, v int",
        "b": "ts timestamp, k int, name string, w int",
        "c": "ts timestamp, name string, x int",
    }.items()
}
QUERIES = {
    # Keys of two types, filters on both sides, and one behind the join.
    "two": (
        """SELECT a.k, a.v + b.w AS s, b.name FROM a [RANGE 20 SECONDS] JOIN b [RANGE 5 SECONDS]
        ON a.k = b.k AND a.name = b.name WHERE a.v > 1 AND b.w < 8 AND a.v <> b.w""",
        """SELECT a.k, a.v + b.w, b.name FROM a JOIN b ON a.k = b.k AND a.name = b.name
        AND b.ts < a.ts + INTERVAL 20 SECOND AND a.ts < b.ts + INTERVAL 5 SECOND
        WHERE a.v > 1 AND b.w < 8 AND a.v <> b.w""",
    ),
    # Three inputs with no key in common, and initcap, which Spark's own form computes: this join stays in one task.
    "three": (
        """SELECT initcap(c.name) AS name, a.v, c.x FROM a [RANGE 4 SECONDS]
        JOIN b [RANGE 4 SECONDS] ON a.k = b.k JOIN c [RANGE 4 SECONDS] ON b.name = c.name""",
        """SELECT upper(c.name), a.v, c.x FROM a JOIN b ON a.k = b.k
        AND b.ts < a.ts + INTERVAL 4 SECOND AND a.ts < b.ts + INTERVAL 4 SECOND
        JOIN c ON b.name = c.name AND greatest(a.ts, b.ts, c.ts) < least(a.ts, b.ts, c.ts) + INTERVAL 4 SECOND""",
    ),
    # Three inputs with a key in common, windows of different sizes, and another key of two of them.
    "star": (
        """SELECT c.name, a.v, b.w, c.x FROM b [RANGE 2 SECONDS], a [RANGE 4 SECONDS], c [RANGE 3 SECONDS]
        WHERE a.name = b.name AND c.name = a.name AND c.x = b.k AND a.v + b.w > c.x + 5""",
        """SELECT c.name, a.v, b.w, c.x FROM a, b, c
        WHERE a.name = b.name AND c.name = a.name AND c.x = b.k AND a.v + b.w > c.x + 5
        AND greatest(a.ts, b.ts, c.ts)
        < least(a.ts + INTERVAL 4 SECOND, b.ts + INTERVAL 2 SECOND, c.ts + INTERVAL 3 SECOND)""",
    ),
}
TEXTS = {name: sql for name, (sql, _) in QUERIES.items()}


def test_a_shuffle_changes_no_answer(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffles: list[tuple[int, int]] = []

    def counted(session: SparkSession, number: int, join: CompiledJoin, port: int, tasks: int) -> DataFrame:
        shuffles.append((number, port))
        return shuffled_plan(session, number, join, port, tasks)

    monkeypatch.setattr("freshet.spark.driver.jobs.shuffled_plan", counted)
    rows = rows_of(random.Random(5))
    expected = duck(rows)
    assert all(expected.values())
    assert answers(spark, tmp_path / "shuffled", STREAMS, TEXTS, rows, most_join_bytes=0, kept_bytes=0) == expected
    assert len(set(shuffles)) == 5, "every input of every join that has a key in common"
    shuffles.clear()
    assert answers(spark, tmp_path / "one task", STREAMS, TEXTS, rows, most_join_bytes=2**30) == expected
    assert not shuffles


def rows_of(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in STREAMS}
    for place in range(240):
        time = NOON + dt.timedelta(milliseconds=250 * place)
        name = rng.choice(["x", "y", "z", None])
        rows["a"].append({"ts": time, "k": rng.choice([0.0, 1.0, 2.5, None]), "name": name, "v": rng.randrange(9)})
        rows["b"].append(
            {"ts": time, "k": rng.choice([0, 1, 2, None]), "name": rng.choice("xy"), "w": rng.randrange(9)}
        )
        rows["c"].append({"ts": time, "name": rng.choice(["x", "z", None]), "x": rng.randrange(3)})
    return rows


def duck(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Counter[tuple[Any, ...]]]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        for name, some in rows.items():
            plain = [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in some]
            connection.register(name, pa.Table.from_pylist(plain))
        return {name: Counter(connection.execute(sql).fetchall()) for name, (_, sql) in QUERIES.items()}
