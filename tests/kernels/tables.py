"""Tables of tricky rows, and how to compare values strictly."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from tests.kernels.expressions.grammar import BITS, DAY

from freshet.model import ARRIVAL, parse_schema

INF, NAN = float("inf"), float("nan")


def pool(kind: str) -> list[Any]:
    """Values at which implementations go wrong; dates and timestamps as counts since 1970."""
    if kind in BITS:
        half = 1 << (BITS[kind] - 1)
        return [0, 1, -1, 2, 3, -7, 100, half - 1, -half, half // 2]
    pools: dict[str, list[Any]] = {
        "float": [0.0, -0.0, 1.0, 1.5, -2.25, 0.10000000149011612, NAN, INF, -INF, 3.4028234663852886e38, 16777216.0],
        "double": [0.0, -0.0, 1.0, 0.1, 1.5, -2.5, NAN, INF, -INF, 1.7976931348623157e308, 5e-324, 9007199254740992.0],
        "boolean": [True, False],
        "string": ["", "a", "b", "ab", "é", "A", "it's", "z\U0001f600", "z\uffff"],
        "date": [0, -1, 1, 19782, -719162, 2932896],
        "timestamp": [0, -1, 1, 1709210096789000, 19782 * DAY, -DAY, -62135596800000000],
    }  # fmt: skip
    return pools[kind]


def make_table(columns: dict[str, str], rows: list[dict[str, Any]]) -> pa.Table:
    """The Arrow table of rows in which dates and timestamps are counts."""
    schema = parse_schema(", ".join(f"{name} {kind}" for name, kind in columns.items()))
    arrays = []
    for field in schema:
        values = [row[field.name] for row in rows]
        raw = {pa.date32(): pa.int32(), pa.timestamp("us", tz="UTC"): pa.int64()}.get(field.type, field.type)
        arrays.append(pa.array(values, raw).cast(field.type))
    arrivals = pa.array(range(1000, 1000 + len(rows)), pa.int64())
    return pa.table([*arrays, arrivals], schema=schema.append(pa.field(ARRIVAL, pa.int64())))


def random_rows(random: Random, columns: dict[str, str], count: int) -> list[dict[str, Any]]:
    """Rows of tricky values, with NULL in all columns but those named ``full_...``."""

    def value(name: str, kind: str) -> Any:
        return None if random.random() < 0.15 and not name.startswith("full") else random.choice(pool(kind))

    return [{name: value(name, kind) for name, kind in columns.items()} for _ in range(count)]


def strict(value: Any) -> Any:
    """Equal exactly if the values are: NaN is itself, and 0.0 is not -0.0."""
    return repr(float(value)) if isinstance(value, float) else value


def numbers(array: Any) -> list[Any]:
    """Values of an Arrow array, dates and timestamps as counts, ready to be compared."""
    raw = {pa.date32(): pa.int32(), pa.timestamp("us", tz="UTC"): pa.int64()}.get(array.type)
    return [strict(value) for value in (array if raw is None else array.cast(raw)).to_pylist()]
