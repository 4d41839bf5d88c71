"""The other side of the comparison: the same query as Structured Streaming runs it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from freshet.bench.rows import COLUMNS, PREDICATES, SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def program(rows: DataFrame) -> DataFrame:
    """The query as a DataFrame, for streams and for batches."""
    from pyspark.sql import functions as F

    for predicate in PREDICATES:
        rows = rows.where(predicate)
    return rows.select(*(F.expr(text).alias(name) for name, text in COLUMNS))


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Seconds of one micro-batch: ``trigger`` as Spark reports it, ``period`` from its start to that of the next."""

    rows: int
    trigger: float
    period: float


class MicroBatches:
    """A streaming query from a folder of Parquet files to another, one file in each micro-batch.

    All files of a block are there when it begins, so the folder is listed once per block and no micro-batch waits
    for a poll: the kindest case for Structured Streaming. The query is stopped between blocks, because a waiting one
    lists its folder a hundred times a second.
    """

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._input, self._output, self._checkpoint = (folder / name for name in ("input", "output", "checkpoint"))
        self._input.mkdir(parents=True)
        self._files = 0

    def run(self, trains: Sequence[pa.Table]) -> list[MicroBatch]:
        """Runs a block; returns its micro-batches without the first, which carries the start of the query, and
        without the last, which has no successor."""
        for file in self._input.iterdir():
            file.unlink()
        for rows in trains:
            pq.write_table(rows, self._input / f"{self._files:06}.parquet")
            self._files += 1
        source = self._session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self._input))
        query = (
            program(source)
            .writeStream.format("parquet")
            .option("path", str(self._output))
            .option("checkpointLocation", str(self._checkpoint))
            .start()
        )
        try:
            query.processAllAvailable()
            progress = [each for each in query.recentProgress if each["numInputRows"]]
        finally:
            query.stop()
        starts = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in progress]
        return [
            MicroBatch(each["numInputRows"], each["durationMs"]["triggerExecution"] / 1e3, after - start)
            for each, start, after in zip(progress[1:-1], starts[1:], starts[2:], strict=False)
        ]

    def output_rows(self) -> int:
        """How many rows the query has written."""
        return self._session.read.parquet(str(self._output)).count()

    def close(self) -> None:
        """Deletes everything."""
        for folder in (self._input, self._output, self._checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
