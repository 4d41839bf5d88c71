"""The rows and the query of the benchmarks that compare Freshet with plain Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from freshet.model import Stream, parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA: Final = "id bigint, k int, v double, w double, ts timestamp"
STREAM: Final = Stream("rows", parse_schema(SCHEMA))
PREDICATES: Final = ("v > 0.25", "k < 80")
COLUMNS: Final = (("id", "id"), ("k", "k"), ("x", "v * 2 + w"))
SQL: Final = (
    f"SELECT {', '.join(f'{text} AS {name}' for name, text in COLUMNS)} FROM rows WHERE {' AND '.join(PREDICATES)}"
)
"""Two filters and a projection; three of five rows pass."""

_EPOCH: Final = 1_700_000_000_000_000


def make_rows(first: int, count: int, seed: int = 0) -> pa.Table:
    """Rows ``first`` to ``first + count`` of the stream.

    >>> make_rows(0, 2).column_names
    ['id', 'k', 'v', 'w', 'ts']
    """
    draw = np.random.default_rng([seed, first])
    ids = np.arange(first, first + count)
    return pa.table(
        {
            "id": ids,
            "k": draw.integers(0, 100, count).astype(np.int32),
            "v": draw.random(count),
            "w": draw.random(count),
            "ts": pa.array(_EPOCH + ids * 1000).cast(pa.timestamp("us", tz="UTC")),
        }
    )


def program(rows: DataFrame) -> DataFrame:
    """The query as a DataFrame, for streams and for batches."""
    from pyspark.sql import functions as F

    for predicate in PREDICATES:
        rows = rows.where(predicate)
    return rows.select(*(F.expr(text).alias(name) for name, text in COLUMNS))
