"""Joins by ordered keys on Spark: the same answers through a shuffle, in one task, and however they buffer."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.spark.piecewise import answers

from freshet.kernels.folds.join import CompiledJoin
from freshet.model import KeyOrder, Stream, parse_schema
from freshet.model.join_buffer import JoinBuffer
from freshet.quality.disorder import Disorder
from freshet.spark.worker.shuffled import shuffled_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]
ORDER = KeyOrder("k", rows=4)
SCHEMA = parse_schema("ts timestamp, k bigint, v int, n int")
STREAMS = {name: Stream(name, SCHEMA, event_time="ts", order=ORDER) for name in "ab"}
TEXTS = {"q": "SELECT a.k, a.n, b.n AS m FROM a, b WHERE a.k = b.k AND a.v = b.v"}


def rows_of(seed: int, lag: int) -> list[Row]:
    rng = random.Random(seed)
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    keys = [max(0, at // 3 - lag - rng.choice((0, 0, 0, 1, 2, 9))) for at in range(240)]
    return [
        {"ts": noon + dt.timedelta(seconds=at), "k": key, "v": rng.randrange(2), "n": at} for at, key in enumerate(keys)
    ]


def above(rows: list[Row]) -> list[Row]:
    """The rows that are not past the mark when they come."""
    past = set(Disorder().judge(np.array([row["k"] for row in rows]), ORDER).past.tolist())
    return [row for at, row in enumerate(rows) if at not in past]


def test_a_shuffle_and_ways_of_buffering_change_no_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffles: list[int] = []

    def counted(session: SparkSession, number: int, join: CompiledJoin, port: int, tasks: int) -> DataFrame:
        shuffles.append(port)
        return shuffled_plan(session, number, join, port, tasks)

    monkeypatch.setattr("freshet.spark.driver.jobs.shuffled_plan", counted)
    rows = {"a": rows_of(1, 0), "b": rows_of(2, 20)}
    kept = {name: above(some) for name, some in rows.items()}
    assert sum(map(len, kept.values())) < 480, "some are past the mark"
    expected = Counter(
        (one["k"], one["n"], other["n"])
        for one, other in product(kept["a"], kept["b"])
        if (one["k"], one["v"]) == (other["k"], other["v"])
    )

    def found(buffer: JoinBuffer, most: int) -> Counter[tuple[Any, ...]]:
        folder, limits = tmp_path / f"{buffer} {most}", {"most_join_bytes": most, "kept_bytes": most}
        return answers(spark, folder, STREAMS, TEXTS, rows, buffer=buffer, **limits)["q"]

    assert found("log", 0) == expected
    assert set(shuffles) == {0, 1}
    shuffles.clear()
    assert found("ram", 2**30) == expected
    in_order = found("sorted", 0)
    assert not shuffles, "one task keeps the order"
    reached = min(max(Disorder().judge(np.array([row["k"] for row in some]), ORDER).marks) for some in rows.values())
    assert in_order == Counter({row: times for row, times in expected.items() if row[0] <= reached})
