"""The floor of ``freshet bench many``: the same queries by NumPy and Arrow, without SQL, log or Spark.

It is what a careful engineer would write by hand. Texts are read as codes of a dictionary, a condition on a text is
decided once for each entry of the dictionary, sums and products that several queries need are computed once per train,
and only rows that pass are projected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from freshet.bench.many.queries import LEAST, MOST, ManyQuery, Predicate

Mask = NDArray[np.bool_]
RowPlaces = NDArray[np.intp]
TEXTS: Final = ("host", "proto")
_MARGIN: Final = 0.01
"""How far the measured selectivity may lie outside the wanted range: rows are drawn at random."""


class TrainColumns:
    """The columns of a train as arrays: texts as codes, missing numbers as NaN."""

    def __init__(self, table: pa.Table) -> None:
        self.rows = table.num_rows
        self.ids = table["id"].to_numpy()
        self.k, self.size = table["k"].to_numpy(), table["size"].to_numpy()
        self.v, self.w = table["v"].to_numpy(), table["w"].to_numpy()
        self.sum = self.v + self.w
        self.bits = self.size * 8
        self.codes: dict[str, RowPlaces] = {}
        self.entries: dict[str, pa.Array] = {}
        self._texts: dict[str, NDArray[np.str_]] = {}
        for name in TEXTS:
            column = table[name].combine_chunks()
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            # In the type that NumPy wants for indices, so that it does not convert them for every query.
            self.codes[name] = coded.indices.to_numpy().astype(np.intp)
            self.entries[name] = coded.dictionary
            self._texts[name] = np.array(coded.dictionary.to_pylist(), dtype=np.str_)

    def by_entry(self, name: str, decide: Callable[[NDArray[np.str_]], Mask]) -> Mask:
        """A condition on a text, decided once for each entry of its dictionary."""
        return np.take(decide(self._texts[name]), self.codes[name])

    def equals(self, name: str, text: str) -> Mask:
        """Where a text is this one."""
        places = np.flatnonzero(self._texts[name] == text)
        found: Mask = self.codes[name] == (places[0] if len(places) else -1)
        return found

    def number(self, name: str) -> NDArray[Any]:
        """A column of numbers."""
        found: NDArray[Any] = getattr(self, name)
        return found


FloorForm = Callable[[TrainColumns, Predicate], Mask]


def _among(columns: TrainColumns, predicate: Predicate) -> Mask:
    [name] = predicate.columns
    if name in TEXTS:
        return columns.by_entry(name, lambda texts: np.isin(texts, predicate.constants))
    return np.isin(columns.number(name), np.array(predicate.constants, dtype=np.int32))


def _between(columns: TrainColumns, predicate: Predicate) -> Mask:
    values, (low, high) = columns.number(predicate.columns[0]), predicate.constants
    inside: Mask = (values >= low) & (values <= high)
    return inside


FORMS: Final[Mapping[str, FloorForm]] = {
    # Comparisons with NaN are false, as those with NULL are.
    "below": lambda columns, p: columns.number(p.columns[0]) < p.constants[0],
    "at_least": lambda columns, p: columns.number(p.columns[0]) >= p.constants[0],
    "above": lambda columns, p: columns.number(p.columns[0]) > p.constants[0],
    "sum_above": lambda columns, p: columns.sum > p.constants[0],
    "bits_below": lambda columns, p: columns.bits < p.constants[0],
    "remainder": lambda columns, p: columns.k % p.constants[0] == p.constants[1],
    "null": lambda columns, p: np.isnan(columns.w),
    "not_null": lambda columns, p: ~np.isnan(columns.w),
    "equal": lambda columns, p: columns.equals(p.columns[0], p.constants[0]),
    "unequal": lambda columns, p: ~columns.equals(p.columns[0], p.constants[0]),
    "prefix": lambda columns, p: columns.by_entry(
        p.columns[0], lambda texts: np.strings.startswith(texts, p.constants[0])
    ),
    "among": _among,
    "between": _between,
}

PROJECTIONS: Final[Mapping[str, Callable[[TrainColumns, RowPlaces], pa.Array]]] = {
    "k": lambda columns, at: pa.array(columns.k[at]),
    "w": lambda columns, at: _or_null(columns.w[at]),
    "host": lambda columns, at: columns.entries["host"].take(pa.array(columns.codes["host"][at])),
    "k_size": lambda columns, at: pa.array(columns.k[at] * 2 + columns.size[at]),
    "bits": lambda columns, at: pa.array(columns.bits[at]),
    "v_k": lambda columns, at: pa.array(columns.v[at] * 100 + columns.k[at]),
    "v_w": lambda columns, at: _or_null(columns.v[at] - columns.w[at]),
    "v_v": lambda columns, at: pa.array(np.square(columns.v[at])),
}


def _or_null(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, from_pandas=True)


def answer(query: ManyQuery, columns: TrainColumns) -> pa.RecordBatch:
    """The rows of a query's output."""
    first, second = query.predicates
    at = np.flatnonzero(FORMS[first.form](columns, first) & FORMS[second.form](columns, second))
    return pa.record_batch([pa.array(columns.ids[at]), PROJECTIONS[query.expression](columns, at)], names=["id", "x"])


def read(path: Path) -> TrainColumns:
    """A train from a Parquet file."""
    return TrainColumns(pq.read_table(path, read_dictionary=list(TEXTS), use_threads=False, memory_map=True))


def write(answers: Iterable[pa.RecordBatch], path: Path) -> None:
    """Writes all outputs of a train to one file, an Arrow IPC stream for each, synced to disk."""
    with path.open("wb") as file:
        for batch in answers:
            with pa.ipc.new_stream(file, batch.schema) as stream:
                stream.write_batch(batch)
        file.flush()
        os.fsync(file.fileno())


def check_selectivities(queries: Sequence[ManyQuery], table: pa.Table) -> None:
    """Refuses queries that let more or fewer rows pass than they should.

    Raises:
        RuntimeError: Names the first such query.
    """
    columns = TrainColumns(table)
    for query in queries:
        share = answer(query, columns).num_rows / columns.rows
        if not LEAST - _MARGIN <= share <= MOST + _MARGIN:
            raise RuntimeError(f"query {query.name} lets {share:.1%} of the rows pass: {query.sql}")
