"""25 stateless queries over trains that are large enough to be split, with their text for DuckDB, and rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

CHUNKS = 3
ROWS = 120_000
"""In a chunk, which is one train."""

LATE = ROWS
"""The first number of the second chunk."""

STREAM = "id bigint, v int, w double, name string"


def queries(has_late_part: bool = False) -> dict[str, str]:
    """By name; SQL that means the same to DuckDB, where a function ``late`` gives back what it is given."""
    found = {}
    for number in range(8):
        found[f"low{number}"] = f"SELECT id, v * 2 AS v FROM s WHERE v < {40 + 10 * number} AND w > 0.5"
        found[f"one{number}"] = f"SELECT id, w FROM s WHERE v = {number} AND name <> 'x'"
        found[f"name{number}"] = f"SELECT id, upper(name) AS name FROM s WHERE name = 'yz' AND v % 16 = {number}"
    # It is not compiled, so that Spark's own form computes it.
    found["hexed"] = "SELECT id, bit_length(name) AS bits FROM s WHERE v > 900"
    if has_late_part:
        found["late"] = "SELECT late(id) AS id FROM s WHERE v < 500"
    return found


def chunk(number: int) -> pa.Table:
    """The same at every call."""
    rng = np.random.default_rng(number)
    ids = np.arange(number * ROWS, (number + 1) * ROWS)
    names = np.array(["x", "yz", "abc"])[rng.integers(0, 3, ROWS)]
    values = rng.integers(0, 1000, ROWS, dtype=np.int32)
    return pa.table({"id": ids, "v": values, "w": rng.random(ROWS), "name": names})
