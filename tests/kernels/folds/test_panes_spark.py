"""The calls against Spark's own aggregates: values, types and NULL."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernels.folds.aggregates import close, group_key
from tests.kernels.folds.logs import NAN, SCHEMA, VALUES, make_row, table
from tests.kernels.folds.test_panes import CALLS

from freshet.kernels.folds import compile_fold
from freshet.model import Call, Lifetime, Panes

pytestmark = pytest.mark.spark

# Spark multiplies the rows by the number of columns whose distinct values are counted.
EXACT = [c for c in CALLS if c.function != "approx_percentile" and (c.function != "count_distinct" or c.column == "v")]


def rows() -> list[dict[str, Any]]:
    """Groups of one to forty rows; Spark's partial sums of mixed signs may overflow where the whole does not."""
    random = Random(11)
    made = []
    for place in range(400):
        row = make_row(random, place % 10, place, unfinite=place % 20 == 0)
        row["k"] = random.choice([None, *(f"{n}" for n in range(place // 10 + 1))])
        row["i"] = None if row["i"] is None else abs(row["i"] // 2)
        row["d"] = None if row["d"] is None else row["d"].copy_abs()
        made.append(row)
    # Without a value in any column.
    made += [{**dict.fromkeys(VALUES), "ts": 1, "k": "empty", "__arrival": 400 + n} for n in range(3)]
    return made


def text(call: Call) -> str:
    if call.function == "count_distinct":
        return f"count(DISTINCT {call.column})"
    name = {"sum": "try_sum", "avg": "try_avg"}.get(call.function, call.function)
    return f"{name}({call.column or '*'})"


@pytest.mark.parametrize("key", ["k", "f"])
def test_calls_give_what_spark_gives(spark: Any, tmp_path: Path, key: str) -> None:
    data = table(rows())
    pq.write_table(data, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet")).coalesce(1)
    frame.createOrReplaceTempView("fold_rows")
    items = ", ".join(f"{text(call)} AS {call.output}" for call in EXACT)
    answer: pa.Table = spark.sql(f"SELECT {key}, {items} FROM fold_rows GROUP BY {key}").toArrow()
    fold = compile_fold(Panes("p", Lifetime("ts", 10), 10, (key,), tuple(EXACT)), SCHEMA)
    output = fold.live([state.empty_table() for state in fold.states]).run(data, [None], [10])[0].output
    for call in EXACT:
        assert output.schema.field(call.output).type == answer.schema.field(call.output).type, call
    got = {group_key(row[key]): row for row in output.to_pylist()}
    want = {group_key(row[key]): row for row in answer.to_pylist()}
    assert got.keys() == want.keys()
    for group, row in got.items():
        values = {c: [r[c] for r in rows() if group_key(r[key]) == group] for c in SCHEMA.names}
        for call in EXACT:
            some = values[call.column] if call.column else []
            assert close(call, row[call.output], want[group][call.output], some), (call, group, some)


def test_nan_is_one_group() -> None:
    fold = compile_fold(Panes("p", Lifetime("ts", 10), 10, ("f",), (Call("n", "count"),)), SCHEMA)
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    data = table([{**base, "ts": 1, "f": f, "__arrival": 1} for f in (NAN, -NAN, 0.0, -0.0)])
    output = fold.live([state.empty_table() for state in fold.states]).run(data, [None], [10])[0].output
    assert sorted(output["n"].to_pylist()) == [2, 2]
