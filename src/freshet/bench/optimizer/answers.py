"""The batch answer of the query of ``freshet bench optimizer``, by Spark over all rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from freshet.bench.optimizer.load import WINDOW_S, first, fitting, large, second, shown, third
from freshet.model import ARRIVAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = f"""
SELECT A.id, {shown("A.v", "T.v")} AS x
FROM s0 A JOIN s1 B ON A.id = B.id JOIN s2 T ON A.id = T.id
WHERE greatest(A.{ARRIVAL}, B.{ARRIVAL}, T.{ARRIVAL}) - least(A.{ARRIVAL}, B.{ARRIVAL}, T.{ARRIVAL}) < {WINDOW_S}000000
  AND {first("A")} AND {second("B")} AND {third("T")} AND {fitting("A.v", "B.v")} AND {large("A.v", "T.v")}
"""
"""Rows join if all of them are valid at one moment: if they came within less than the window."""


def batch_answer(session: SparkSession, rows: Mapping[str, pa.Table], folder: Path) -> pa.Table:
    """What the query answers over these rows, with their arrivals, by stream."""
    for name, table in rows.items():
        path = folder / f"{name}.parquet"
        pq.write_table(table, path)
        session.read.parquet(str(path)).createOrReplaceTempView(name)
    return session.sql(BATCH).toArrow()


def rows_wrong(given: pa.Table, right: pa.Table) -> int:
    """Number of rows that are missing or too many, whatever their order.

    >>> one = pa.table({"id": [1, 1, 2], "x": [0.5, 0.5, 0.25]})
    >>> rows_wrong(one, one.take([2, 0, 1])), rows_wrong(one, one.take([0, 2])), rows_wrong(one, one.slice(1, 1))
    (0, 1, 2)
    """
    counts: dict[int, int] = {}
    for sign, table in ((1, given), (-1, right)):
        hashes = pd.util.hash_pandas_object(table.to_pandas(), index=False).to_numpy()
        values, found = np.unique(hashes, return_counts=True)
        for value, count in zip(values.tolist(), found.tolist(), strict=True):
            counts[value] = counts.get(value, 0) + sign * count
    return sum(map(abs, counts.values()))
