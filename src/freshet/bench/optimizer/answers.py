"""The batch answer of the query of ``freshet bench optimizer``, by NumPy and pandas over all rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from freshet.bench.optimizer.load import WINDOW_S, first, fitting, large, second, shown, third
from freshet.model import ARRIVAL

SAMPLE: Final = 8
"""Answers are compared for every eighth id: a batch over all rows takes as long as the run itself. Rows join by id, so
all rows of such an id are taken."""
_AT_ONCE: Final = 20_000


def sampled(table: pa.Table) -> pa.Table:
    """The rows of the ids for which answers are compared.

    >>> sampled(pa.table({"id": [7, 8, 9, 16]}))["id"].to_pylist()
    [8, 16]
    """
    return table.filter(pc.equal(pc.bit_wise_and(table["id"], SAMPLE - 1), 0))


def batch_answer(rows: Mapping[str, pa.Table]) -> pa.Table:
    """What the query answers over these rows, with their arrivals, by stream. Rows join if all of them are valid at one
    moment: if they came within less than the window."""
    a, b, t = (table.select(["id", "v", "w", ARRIVAL]).to_pandas() for table in rows.values())
    a, b, t = a[_true(first("A"), A=a)], b[_true(second("B"), B=b)], t[_true(third("T"), T=t)]
    pairs = _near(a.merge(b, on="id", suffixes=("", "_b")), ["", "_b"])
    pairs = pairs[_true(fitting("P.v", "P.v_b"), P=pairs)]
    triples = _near(pairs.merge(t, on="id", suffixes=("", "_t")), ["", "_b", "_t"])
    triples = triples[_true(large("R.v", "R.v_t"), R=triples)]
    return pa.table({"id": triples["id"].to_numpy(), "x": _values(shown("R.v", "R.v_t"), R=triples)})


def _near(rows: pd.DataFrame, suffixes: list[str]) -> pd.DataFrame:
    """Rows whose parts came within less than the window."""
    arrivals = rows[[ARRIVAL + suffix for suffix in suffixes]].to_numpy()
    return rows[np.ptp(arrivals, axis=1) < WINDOW_S * 1_000_000] if len(rows) else rows


def _true(condition: str, **tables: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return _values(condition, **tables).astype(bool)


def _values(text: str, **tables: pd.DataFrame) -> np.ndarray[Any, Any]:
    """The values of an expression, whose text means the same in Python as in SQL: all numbers in it are positive."""
    code = compile(text, "<expression>", "eval")
    parts = [eval(code, {"__builtins__": {}}, names) for names in _pieces(tables)]
    return np.concatenate(parts) if parts else np.empty(0)


def _pieces(tables: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, SimpleNamespace]]:
    """A few rows at once: their columns stay in the cache."""
    (name, table), = tables.items()  # fmt: skip
    columns = {column: table[column].to_numpy() for column in table.columns if column != ARRIVAL}
    for begin in range(0, len(table), _AT_ONCE):
        yield {name: SimpleNamespace(**{key: each[begin : begin + _AT_ONCE] for key, each in columns.items()})}


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
