"""What is refused by its types without Spark, held against Spark itself."""

from __future__ import annotations

import random
from itertools import product

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from freshet.model import UserError, parse_schema
from freshet.model.schema import type_text
from freshet.spark.driver.signatures import signature
from freshet.sql import SqlTyper, build_query
from freshet.sql.check.functions import IN_GRAMMAR, functions
from freshet.sql.check.signatures import signatures
from freshet.sql.check.types import is_known

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

KINDS = (
    "boolean", "tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "array<int>", "map<string,int>", "struct<a:int>",
)  # fmt: skip
DDL = ", ".join(f"c{number} {kind}" for number, kind in enumerate(KINDS))
SCHEMA: pa.Schema = parse_schema(DDL)
PAIRS = [(f"c{left}", f"c{right}") for left, right in product(range(len(KINDS)), repeat=2)]
EXPRESSIONS = [
    *(f"{left} {sign} {right}" for sign in ("+", "-", "*", "/", "%", "div", "=", "<") for left, right in PAIRS),
    *(f"{left} IN ({right})" for left, right in PAIRS),
    *(f"{left} BETWEEN {right} AND {right}" for left, right in PAIRS),
    *(f"CASE WHEN c0 THEN {left} ELSE {right} END" for left, right in PAIRS),
    *(f"coalesce({left}, {right})" for left, right in PAIRS),
    *(f"CAST({left} AS {kind})" for kind in KINDS for left, _ in PAIRS[:: len(KINDS)]),
    *(f"-{left}" for left, _ in PAIRS[:: len(KINDS)]),
    *(f"CASE WHEN {left} THEN 1 END" for left, _ in PAIRS[:: len(KINDS)]),
    *(f"{left} LIKE 'a%'" for left, _ in PAIRS[:: len(KINDS)]),
]
REFUSED_LOOKED_AT = 120
FUNCTIONS_LOOKED_AT = 6


def column_type(expression: str) -> pa.DataType | None:
    """The type that is found without Spark; None: the expression is refused."""
    try:
        query = build_query("q", f"SELECT {expression} AS x FROM s", {"s": SCHEMA})
    except UserError:
        return None
    return query.graph.output({"s": SCHEMA}, SqlTyper()).field("x").type


@pytest.fixture(scope="module")
def found() -> dict[str, pa.DataType | None]:
    return {expression: column_type(expression) for expression in EXPRESSIONS}


def test_what_is_taken_is_taken_by_spark_with_the_same_type(
    spark: SparkSession, found: dict[str, pa.DataType | None]
) -> None:
    taken = [expression for expression, kind in found.items() if kind is not None]
    assert len(taken) > len(EXPRESSIONS) / 4
    rows = spark.createDataFrame([], DDL)
    schema = rows.selectExpr(*(f"{expression} AS x{number}" for number, expression in enumerate(taken))).schema
    wrong = {
        expression: (type_text(kind), field.dataType.simpleString())
        for expression, field in zip(taken, schema, strict=True)
        if (kind := found[expression]) is not None and is_known(kind)
        and type_text(kind) != field.dataType.simpleString()
    }  # fmt: skip
    assert wrong == {}


def test_what_is_refused_is_refused_by_spark(spark: SparkSession, found: dict[str, pa.DataType | None]) -> None:
    refused = [expression for expression, kind in found.items() if kind is None]
    rows = spark.createDataFrame([], DDL)
    looked_at = random.Random(7).sample(refused, REFUSED_LOOKED_AT)
    assert [expression for expression in looked_at if takes(rows, expression)] == []


def takes(rows: DataFrame, expression: str) -> bool:
    try:
        _ = rows.selectExpr(expression).schema
    except PySparkException:
        return False
    return True


def test_the_file_of_signatures_says_what_spark_says(spark: SparkSession) -> None:
    names = [name for name, kind in functions().items() if kind == "scalar" and name not in IN_GRAMMAR]
    for name in ("upper", "date_add", *random.Random(11).sample(names, FUNCTIONS_LOOKED_AT)):
        assert signature(spark, name).text() == signatures()[name].text(), name
