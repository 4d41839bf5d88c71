"""Aggregates that merge a train in parts: the same answers as in one task, and as DuckDB's."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from tests.spark.piecewise import answers

from freshet.model import Stream, parse_schema
from freshet.spark.worker.assignment import Assignment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
STREAMS = {
    name: Stream(name, parse_schema("ts timestamp, k string, v int"), event_time="ts", lateness=2) for name in "ab"
}
_ENDS = "generate_series(TIMESTAMP '2024-01-01 12:00:00', TIMESTAMP '2024-01-01 12:02:00', INTERVAL {0} SECOND)"
QUERIES = {
    # Partial answers, different values, filters before and a HAVING behind.
    "sliding": (
        """SELECT k, count(*) AS n, sum(v) AS s, count(DISTINCT v) AS d, window_end AS e
        FROM a [RANGE 20 SECONDS SLIDE 5 SECONDS] WHERE v <> 3 GROUP BY k HAVING count(*) > 2""",
        f"""SELECT k, count(*), sum(v), count(DISTINCT v), e FROM a, (SELECT unnest({_ENDS.format(5)}) AS e)
        WHERE v <> 3 AND ts >= e - INTERVAL 20 SECOND AND ts < e AND e <= closed GROUP BY k, e HAVING count(*) > 2""",
    ),
    # Two paths into one aggregate, and one over the answers of another.
    "both": (
        """SELECT max(n) AS m, window_end AS e FROM (
            SELECT k, count(*) AS n, window_end AS t
            FROM (SELECT ts, k FROM a UNION ALL SELECT ts, k FROM b WHERE v > 1)
            [RANGE 5 SECONDS SLIDE 5 SECONDS] GROUP BY k) [RANGE 15 SECONDS SLIDE 15 SECONDS]""",
        f"""SELECT max(n), e FROM (SELECT unnest({_ENDS.format(15)}) AS e), (
            SELECT count(*) AS n, time_bucket(INTERVAL 5 SECOND, ts) + INTERVAL 5 SECOND AS t
            FROM (SELECT ts, k FROM a UNION ALL SELECT ts, k FROM b WHERE v > 1) GROUP BY k, t)
        WHERE t > e - INTERVAL 15 SECOND AND t <= e AND e <= closed GROUP BY e""",
    ),
    # initcap is computed in Spark's own form: in a job before, so that nothing is left to do in parts.
    "staged": (
        "SELECT count(*) AS n, window_end AS e FROM a [RANGE 5 SECONDS SLIDE 5 SECONDS] WHERE initcap(k) = 'X'",
        """SELECT count(*), time_bucket(INTERVAL 5 SECOND, ts) + INTERVAL 5 SECOND AS e FROM a
        WHERE k = 'x' AND e <= closed GROUP BY e""",
    ),
}
TEXTS = {name: sql for name, (sql, _) in QUERIES.items()}


def test_parts_change_no_answer(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parted: list[tuple[str, int, int]] = []
    text = Assignment.text

    def noted(assignment: Assignment) -> str:
        trains = {train.stream for train in assignment.trains() if train.rows}
        parted.extend((fold, assignment.parts, len(trains)) for fold in assignment.parted)
        return text(assignment)

    monkeypatch.setattr(Assignment, "text", noted)
    rows = rows_of(random.Random(7))
    expected = duck(rows)
    assert all(expected.values())
    assert answers(spark, tmp_path / "parts", STREAMS, TEXTS, rows, part_overhead=-1.0) == expected
    assert {fold.partition(".")[0] for fold, _, _ in parted} == {"sliding", "both"}
    assert len({fold for fold, _, _ in parted}) == 2, "that of sliding, and the first of both"
    assert all(parts > 1 for _, parts, _ in parted)
    assert max(trains for fold, _, trains in parted if fold.startswith("both")) == 2, "both of its paths at once"
    parted.clear()
    assert answers(spark, tmp_path / "one task", STREAMS, TEXTS, rows, part_overhead=math.inf) == expected
    assert not parted


def rows_of(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    def moment(place: int) -> dt.datetime:
        return NOON + dt.timedelta(milliseconds=250 * place + rng.randrange(1500))

    return {
        name: [{"ts": moment(place), "k": rng.choice(["x", "y", None]), "v": rng.randrange(6)} for place in range(240)]
        for name in STREAMS
    }


def duck(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The answers at the boundaries that both streams have passed."""
    newest = min(max(row["ts"] for row in some) for some in rows.values())
    own = max(row["ts"] for row in rows["a"])
    with duckdb.connect(config={"threads": "1"}) as connection:
        for name, some in rows.items():
            plain = [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in some]
            connection.register(name, pa.Table.from_pylist(plain))
        found = {}
        for name, (_, sql) in QUERIES.items():
            closed = (newest if name == "both" else own) - dt.timedelta(seconds=2)
            text = sql.replace("closed", f"TIMESTAMP '{closed.replace(tzinfo=None)}'")
            found[name] = Counter(tuple(map(_in_utc, row)) for row in connection.execute(text).fetchall())
        return found


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value
