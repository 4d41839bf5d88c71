"""A range of a log as a DataFrame, read where Spark computes and not through the driver."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshet.log import read_segment
from freshet.model import ARRIVAL, Segment, Train, schema_text


def frame(session: SparkSession, folder: Path, train: Train, schema: pa.Schema) -> DataFrame:
    """The tuples of a train of a stream of this schema, without their arrivals, from a folder that all executors see.

    It is read anew with every action. The log does not wait for it: where files of the range were removed or
    compacted by then, the action fails, and a new frame is needed.
    """
    columns = pa.schema([field for field in schema if field.name != ARRIVAL])
    count = max(1, min(len(train.segments), 4 * session.sparkContext.defaultParallelism))
    parts = [train.segments[number::count] for number in range(count)]
    read = partial(_read, folder.resolve(), parts, train.first, train.end, columns.names)
    return session.range(0, count, 1, count).mapInArrow(read, schema_text(columns))


def _read(
    folder: Path,
    parts: list[tuple[Segment, ...]],
    first: int,
    end: int,
    names: list[str],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for segment in parts[number]:
                table = read_segment(folder, segment, first, end)
                yield from table.select(names).combine_chunks().to_batches()
