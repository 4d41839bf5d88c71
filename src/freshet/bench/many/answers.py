"""Checks that the sides of ``freshet bench many`` gave the same rows: each must have given those of the floor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from freshet.bench.many.files import Files
from freshet.bench.many.floor import TrainColumns, answer
from freshet.bench.many.queries import ManyQuery


@dataclass(frozen=True, slots=True)
class GivenRows:
    """What a query has given, in whatever order its rows came.

    Args:
        files: The input that it has read, by the numbers of files.
        rows: Number of output rows.
        digest: The sum of the hashes of all rows.
    """

    files: tuple[int, ...]
    rows: int
    digest: int


def digest(table: pa.Table) -> int:
    """A number that is the same for the same rows in another order.

    >>> one = pa.table({"id": [1, 2], "x": [0.5, None]})
    >>> digest(one) == digest(one.take([1, 0])), digest(one) == digest(one.slice(1))
    (True, False)
    """
    frame = table.to_pandas()
    hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy() if len(frame) else np.zeros(0, np.uint64)
    return int(np.sum(hashes, dtype=np.uint64))


def answer_of(files: Iterable[int], table: pa.Table) -> GivenRows:
    """The answer from all output rows."""
    return GivenRows(tuple(sorted(files)), table.num_rows, digest(table))


def answer_in(files: Iterable[int], paths: Sequence[Path]) -> GivenRows:
    """The answer from the Parquet files with the output."""
    if not paths:
        return GivenRows(tuple(sorted(files)), 0, 0)
    tables = [pq.read_table(path, partitioning=None, use_threads=False) for path in paths]
    return answer_of(files, pa.concat_tables(tables))


def parquet_below(folder: Path) -> list[Path]:
    """The Parquet files below a folder; Spark leaves markers and checksums beside its own."""
    return [path for path in sorted(folder.rglob("*.parquet")) if path.is_file() and path.name[0] not in "._"]


class Expected:
    """The right answers, by the floor; answers to the same input are computed once."""

    def __init__(self, queries: Sequence[ManyQuery], files: Files) -> None:
        self._queries, self._files = queries, files
        self._known: dict[tuple[int, ...], list[GivenRows]] = {}
        self._columns: dict[tuple[int, ...], TrainColumns] = {}

    def check(self, side: str, answers: Sequence[GivenRows]) -> int:
        """Returns how many rows were checked.

        Raises:
            RuntimeError: A query gave other rows than it should.
        """
        for number, found in enumerate(answers):
            right = self._answer(number, found.files)
            if found != right:
                query = self._queries[number]
                raise RuntimeError(
                    f"{side} gave {found.rows} rows for {query.name} over {len(found.files)} files, and "
                    f"{right.rows} are right: the comparison means nothing ({query.sql})"
                )
        return sum(found.rows for found in answers)

    def _answer(self, number: int, files: tuple[int, ...]) -> GivenRows:
        if files not in self._columns:
            rows = [pq.read_table(path) for path in self._files.paths(files)]
            if not rows:
                return GivenRows(files, 0, 0)
            self._columns[files] = TrainColumns(pa.concat_tables(rows))
        batch = answer(self._queries[number], self._columns[files])
        return GivenRows(files, batch.num_rows, digest(pa.table(batch)))
