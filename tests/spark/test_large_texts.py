"""Queries as large as they may be, in both physical forms."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, with_arrivals, write_train

from freshet.model import Query, parse_schema
from freshet.sql import build_query
from freshet.sql.parse.limits import MOST_BRACKETS, MOST_LEVELS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROWS = 4000
SCHEMA = parse_schema("k bigint, t string")


def _built(text: str) -> Query:
    return build_query("q", text, {"s": SCHEMA})


def _run(text: str, form: str, spark: SparkSession, folder: Path) -> list[dict[str, object]]:
    table = pa.table({"k": range(ROWS), "t": ["x"] * ROWS}, schema=SCHEMA)
    with Harness(spark, folder, vectorise=form == "vectorised") as harness:
        harness.install({"s": SCHEMA}, _built(text))
        assert harness.executor.form(harness.network.of("q"))[0] == form
        train = write_train(harness.state, "s", with_arrivals(table))
        result = harness.run(harness.unit(train, "q"))
        assert result.retry is None
        assert result.chains[0].failure is None
        output = harness.read(result, "q")
    return [] if output is None else output.drop_columns(["__arrival"]).to_pylist()


@pytest.mark.parametrize("form", ["vectorised", "catalyst"])
def test_three_thousand_conditions(form: str, spark: SparkSession, tmp_path: Path) -> None:
    where = " AND ".join(f"k <> {number}" for number in range(3000))
    found = _run(f"SELECT k FROM s WHERE {where}", form, spark, tmp_path)
    assert [row["k"] for row in found] == list(range(3000, ROWS))


@pytest.mark.parametrize("form", ["vectorised", pytest.param("catalyst", marks=pytest.mark.long)])
def test_three_thousand_conditions_in_a_column(form: str, spark: SparkSession, tmp_path: Path) -> None:
    all_of = " AND ".join(f"k <> {number}" for number in range(3000))
    found = _run(f"SELECT k, {all_of} AS ok FROM s WHERE k >= 2990", form, spark, tmp_path)
    assert found == [{"k": k, "ok": k >= 3000} for k in range(2990, ROWS)]


@pytest.mark.parametrize("form", ["vectorised", "catalyst"])
def test_the_deepest_expressions(form: str, spark: SparkSession, tmp_path: Path) -> None:
    # One level each for the column, its name and the alias.
    terms = MOST_LEVELS - 3
    # Spark's form counts the errors of each addition over all that stand before it, so that its size is quadratic.
    sums = terms if form == "vectorised" else 30
    added = " + ".join(["k", *["1"] * (sums - 1)])
    joined = " || ".join(["t"] * terms)
    depth = MOST_BRACKETS - 1
    nested = f"{'upper(' * depth}t{')' * depth}"
    found = _run(f"SELECT {added} AS a, {joined} AS j, {nested} AS n FROM s WHERE k < 3", form, spark, tmp_path)
    assert found == [{"a": k + sums - 1, "j": "x" * terms, "n": "X"} for k in range(3)]


@pytest.mark.parametrize("form", ["vectorised", "catalyst"])
def test_many_sub_queries(form: str, spark: SparkSession, tmp_path: Path) -> None:
    text = f"SELECT k + 1 AS k FROM {'(SELECT k + 1 AS k FROM ' * 30}s{')' * 30} WHERE k < 33"
    assert _run(text, form, spark, tmp_path) == [{"k": 31}, {"k": 32}, {"k": 33}]
