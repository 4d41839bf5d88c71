"""A range of a log as a DataFrame, read where Spark computes and not through the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshet.log import read_segment
from freshet.model import Train, schema_text
from freshet.model.schema import without_arrival


def frame(session: SparkSession, folder: Path, train: Train, schema: pa.Schema) -> DataFrame:
    """The tuples of a train, without their arrivals; its stream has this schema, and all executors see the folder.

    Every action reads the files again. The log does not wait for that: if it has removed or compacted some of them, the
    action fails, and a new frame is needed.
    """
    columns = without_arrival(schema)
    count = max(1, min(len(train.segments), 4 * session.sparkContext.defaultParallelism))
    parts = [replace(train, segments=train.segments[number::count]) for number in range(count)]
    read = partial(_read, folder.resolve(), parts, columns.names)
    return session.range(0, count, 1, count).mapInArrow(read, schema_text(columns))


def _read(
    folder: Path, parts: list[Train], names: list[str], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for part in map(parts.__getitem__, batch.column(0).to_pylist()):
            for segment in part.segments:
                table = read_segment(folder, segment, part.first, part.end)
                yield from table.select(names).combine_chunks().to_batches()
