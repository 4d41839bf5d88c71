"""Structured Streaming's side of a comparison: streaming queries over folders of Parquet files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow.parquet as pq

from freshet.bench.rig.checkpoints import name_of
from freshet.bench.rig.feed import Chunk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    Sink = Literal["parquet", "noop"] | Callable[[DataFrame, int], None]
    """The file sink, the sink that keeps nothing, or code for each micro-batch."""


class StreamingRig:
    """Streaming queries, each with a checkpoint. What they wrote is deleted afterwards.

    A waiting query lists its folders a hundred times a second. So if it matters, files are written while no query
    runs: that is the best case for Structured Streaming.

    Args:
        session: Where they run.
        folder: Has a folder with the files of each stream, ``output`` and ``checkpoints``.
        streams: Schemas by stream.
    """

    def __init__(self, session: SparkSession, folder: Path, streams: Mapping[str, str]) -> None:
        self.session, self.folder, self.streams = session, folder, dict(streams)
        self._files = 0
        self._running: list[StreamingQuery] = []
        for name in streams:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def output(self, query: str) -> Path:
        """Where the rows of a query go."""
        return self.folder / "output" / query

    def checkpoint(self, query: str) -> Path:
        """Where the checkpoint of a query is."""
        return self.folder / "checkpoints" / query

    def write(self, chunk: Chunk, due: float = 0.0) -> None:
        """Brings rows in, a file for each stream: first hidden, then renamed. ``due`` is in no file."""
        for name, rows in chunk.items():
            hidden = self.folder / name / f"_{name_of(self._files)}"
            pq.write_table(rows, hidden)
            hidden.rename(hidden.with_name(hidden.name[1:]))
        self._files += 1

    def clear(self) -> None:
        """Deletes the files of all streams."""
        for name in self.streams:
            for file in (self.folder / name).iterdir():
                file.unlink()

    def source(self, stream: str, most_files: int | None = None) -> DataFrame:
        """A stream as a streaming DataFrame, with at most ``most_files`` files in a micro-batch."""
        reader = self.session.readStream.schema(self.streams[stream])
        reader = reader if most_files is None else reader.option("maxFilesPerTrigger", most_files)
        return reader.parquet(str(self.folder / stream))

    def start(self, name: str, rows: DataFrame, sink: Sink) -> StreamingQuery:
        """Starts a query, or continues it where it was stopped."""
        writer = rows.writeStream.option("checkpointLocation", str(self.checkpoint(name)))
        if sink == "parquet":
            writer = writer.format("parquet").option("path", str(self.output(name)))
        else:
            writer = writer.format("noop") if sink == "noop" else writer.foreachBatch(sink)
        self._running.append(writer.start())
        return self._running[-1]

    def run(self, name: str, rows: DataFrame, sink: Sink) -> list[Any]:
        """Makes a query work off the files that are there; returns what Spark reports of its micro-batches."""
        query = self.start(name, rows, sink)
        try:
            query.processAllAvailable()
            return [each for each in query.recentProgress if each["numInputRows"]]
        finally:
            self.stop()

    def check(self) -> None:
        """Raises if a query has ended by itself."""
        for query in self._running:
            if not query.isActive:
                raise RuntimeError(f"a streaming query has ended: {query.exception()}")

    def stop(self) -> None:
        """Ends all queries."""

        def stop(query: StreamingQuery) -> None:
            with suppress(Exception):  # a query in a micro-batch complains when it is stopped
                query.stop()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(stop, self._running))
        self._running.clear()
