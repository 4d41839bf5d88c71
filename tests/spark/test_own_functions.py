"""Functions of one's own run in both forms, with the same answers and the same errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, with_arrivals, write_train

from freshet.model import UnitResult, parse_schema
from freshet.model.functions import Vectorised, make_known
from freshet.sql import OwnFunctions, build_query, make_macro

Run = Callable[..., tuple[pa.Table | None, UnitResult]]
SCHEMA = parse_schema("v int, s string")
ROWS = {"v": pa.array([1, None, 3, 4], pa.int32()), "s": ["a", "b", "cd", "efg"]}


def stretched(number: pa.Array, text: pa.Array) -> pa.Array:
    return pc.multiply(number, pc.cast(pc.utf8_length(text), pa.float64()))


def no_threes(number: pa.Array) -> pa.Array:
    if any(value.as_py() == 3 for value in number):
        raise ValueError("three")
    return pc.add(number, pa.scalar(1, pa.int32()))


def exits(number: pa.Array) -> pa.Array:
    sys.exit(3)


def own() -> OwnFunctions:
    made = [
        Vectorised("stretched", (pa.float64(), pa.string()), pa.float64(), "1", lambda: stretched),
        Vectorised("no_threes", (pa.int32(),), pa.int32(), "1", lambda: no_threes),
        Vectorised("exits", (pa.int32(),), pa.int32(), "1", lambda: exits),
        Vectorised("shorter", (pa.int32(),), pa.int32(), "1", lambda: lambda x: x.slice(1)),
        Vectorised("typed", (pa.int32(),), pa.int32(), "1", lambda: lambda x: x.cast(pa.int64())),
    ]
    declared = {each.name: make_known(each) for each in made}
    macro = make_known(make_macro("both", "stretched(x, 'ab') + y", "x double, y double", OwnFunctions(declared)))
    return OwnFunctions({**declared, "both": macro})


@pytest.fixture(params=[True, False], ids=["vectorised", "catalyst"])
def run(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Run]:
    with Harness(spark, tmp_path, vectorise=request.param) as harness:
        train = write_train(tmp_path, "st", with_arrivals(pa.table(ROWS)))

        def one(name: str, sql: str, fail: bool = False) -> tuple[pa.Table | None, UnitResult]:
            query = build_query(name, sql, {"st": SCHEMA}, functions=own())
            harness.install({"st": SCHEMA}, query, fail={name} if fail else set())
            result = harness.run(harness.unit(train, name))
            return harness.read(result, name), result

        yield one


def test_values_errors_and_nulls(run: Run) -> None:
    table, result = run(
        "q",
        "SELECT stretched(v, s) AS a, both(v, 2) AS b, no_threes(v) AS c, CASE WHEN v <> 3 THEN no_threes(v) END AS d "
        "FROM st WHERE coalesce(no_threes(v), 0) < 100",
    )
    assert table is not None, result.chains
    assert table.drop_columns(["__arrival"]).to_pydict() == {
        "a": [1.0, None, 6.0, 12.0],
        "b": [4.0, None, 8.0, 10.0],
        "c": [2, None, None, 5],
        "d": [2, None, None, 5],
    }
    # The row with 3 fails in the filter and in c; in d nobody asks for it.
    assert sum(chain.errors for chain in result.chains) == 2


def test_what_it_raises_is_the_reason_of_a_query_that_an_error_fails(run: Run) -> None:
    table, result = run("q", "SELECT no_threes(v) AS x, v / 2 AS half FROM st WHERE v > 1", fail=True)
    assert table is None or not table.num_rows
    counted = "1 evaluation error in 4 tuples (on_error = fail)"
    assert [chain.failure for chain in result.chains] == [f"{counted}: function no_threes raised ValueError: three"]
    _, result = run("r", "SELECT no_threes(v) AS x, v DIV (v - 4) AS y FROM st WHERE v <> 3", fail=True)
    # It would raise for a tuple that the query does not want, so it is not to blame.
    assert [chain.failure for chain in result.chains] == [f"{counted} in one or more of: no_threes(v); v DIV (v - 4)"]


def test_one_that_exits_is_an_error_and_its_worker_goes_on(run: Run) -> None:
    table, result = run("q", "SELECT v, exits(v) AS x FROM st")
    assert table is not None, result.chains
    assert table["x"].to_pylist() == [None] * 4
    assert [chain.errors for chain in result.chains] == [4]
    _, result = run("r", "SELECT exits(v) AS x FROM st", fail=True)
    assert [chain.failure for chain in result.chains] == [
        "4 evaluation errors in 4 tuples (on_error = fail): function exits raised SystemExit: 3"
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("shorter", "function shorter gave 3 values for 4 rows"),
        ("typed", "function typed gave values of the Arrow type int64"),
    ],
)
def test_what_is_not_as_declared_fails_the_query(run: Run, name: str, told: str) -> None:
    _, result = run(name, f"SELECT {name}(v) AS x FROM st")
    assert told in str(result.chains[0].failure)
