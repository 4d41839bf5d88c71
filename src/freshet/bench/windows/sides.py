"""Freshet and Structured Streaming over the same windows: a replay as fast as it goes, and a live feed."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshet.bench.engine_rig import Chunk, EngineRig, engine_rig
from freshet.bench.windows.load import Case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OUT: Final = "out"
CHUNK: Final = 0.25
"""Seconds of a live feed that come at once."""
BATCH_SECONDS: Final = 5
"""Seconds of event time in a micro-batch of a replay: about the time that one takes at the rate that is sustained."""


class Side(Protocol):
    """A system under test; every call begins from nothing."""

    def replay(self, case: Case, before: Sequence[Chunk], timed: Sequence[Chunk]) -> tuple[float, int]:
        """Works ``before`` off, then ``timed``; returns the seconds of the latter, and how many rows came out."""

    def live(self, case: Case, rate: float, seconds: float) -> list[float]:
        """Feeds rows at the pace of their event time; returns how long each output tuple took, in seconds, from when
        it could be known until it could be read."""


class Freshet:
    """An engine over a log of its own."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session, self._folder = session, folder

    def replay(self, case: Case, before: Sequence[Chunk], timed: Sequence[Chunk]) -> tuple[float, int]:
        with self._open(case) as rig:
            rig.engine.stop(drain=True)
            for chunk in before:
                rig.feed(chunk)
            rig.engine.run()
            for chunk in timed:
                rig.feed(chunk)
            began = time.perf_counter()
            rig.engine.run()
            return time.perf_counter() - began, rig.log.end(OUT)

    def live(self, case: Case, rate: float, seconds: float) -> list[float]:
        ends: list[tuple[int, float]] = []
        with self._open(case) as rig:
            rig.queues.committed = lambda: ends.append((rig.log.end(OUT), time.time()))
            feeder = threading.Thread(target=_feed, args=(case, rate, seconds, rig.feed))
            feeder.start()
            rig.engine.run(time.time() + seconds)
            feeder.join()
            table = rig.log.read(OUT, 0, ends[-1][0] if ends else 0)
        seen = np.array([moment for _, moment in ends])
        places = np.searchsorted([end for end, _ in ends], np.arange(table.num_rows), side="right")
        return _latencies(case, table, seen[places])

    def _open(self, case: Case) -> AbstractContextManager[EngineRig]:
        return engine_rig(self._session, self._folder / "freshet", case.streams, {OUT: case.sql})


@dataclass(slots=True)
class Streaming:
    """A streaming query from folders of Parquet files to one folder for each batch, with a checkpoint."""

    session: SparkSession
    folder: Path
    _files: int = 0

    def replay(self, case: Case, before: Sequence[Chunk], timed: Sequence[Chunk]) -> tuple[float, int]:
        with self._clean():
            for chunk in before:
                self._write(chunk)
            query = self._start(case, BATCH_SECONDS)
            try:
                query.processAllAvailable()
                # A query that waits lists its folders a hundred times a second: they are filled behind its back.
                query.stop()
                for chunk in timed:
                    self._write(chunk)
                began = time.perf_counter()
                query = self._start(case, BATCH_SECONDS)
                query.processAllAvailable()
                seconds = time.perf_counter() - began
            finally:
                query.stop()
            return seconds, self.session.read.parquet(str(self.folder / "output" / "*")).count()

    def live(self, case: Case, rate: float, seconds: float) -> list[float]:
        found: list[float] = []
        moments: dict[int, float] = {}
        with self._clean():
            for name in case.streams:
                (self.folder / name).mkdir(parents=True)
            query = self._start(case, None, moments)
            try:
                _feed(case, rate, seconds, self._write)
            finally:
                query.stop()
            for batch, moment in moments.items():
                rows = pq.read_table(self.folder / "output" / str(batch))
                found += _latencies(case, rows, np.full(rows.num_rows, moment))
        return found

    @contextmanager
    def _clean(self) -> Iterator[None]:
        try:
            yield
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, chunk: Chunk) -> None:
        self._files += 1
        for name, rows in chunk.items():
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            hidden = self.folder / name / f"_{self._files:06}.parquet"
            pq.write_table(rows, hidden)
            hidden.rename(hidden.with_name(hidden.name[1:]))

    def _start(self, case: Case, most_files: int | None, moments: dict[int, float] | None = None) -> StreamingQuery:
        streams = {}
        for name, schema in case.streams.items():
            reader = self.session.readStream.schema(schema)
            reader = reader if most_files is None else reader.option("maxFilesPerTrigger", most_files)
            streams[name] = reader.parquet(str(self.folder / name))

        def write(rows: DataFrame, batch: int) -> None:
            rows.write.mode("overwrite").parquet(str(self.folder / "output" / str(batch)))
            if moments is not None:
                moments[batch] = time.time()

        writer = case.streaming(streams).writeStream.outputMode("append").foreachBatch(write)
        return writer.option("checkpointLocation", str(self.folder / "checkpoint")).start()


def _feed(case: Case, rate: float, seconds: float, feed: Callable[[Chunk], None]) -> None:
    """Brings rows in chunks whose event times have just passed."""
    began = at = time.time()
    while at < began + seconds:
        until = at + CHUNK
        time.sleep(max(0.0, until - time.time()))
        feed(case.rows(at, until, rate))
        at = until


def _latencies(case: Case, table: pa.Table, seen: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    # Spark writes timestamps to Parquet in a form that is read as nanoseconds.
    exact = [pc.cast(table[name], pa.timestamp("us", tz="UTC"), safe=False) for name in case.ready]
    times = [np.asarray(pc.cast(each, pa.int64())) / 1e6 for each in exact]
    found: list[float] = (seen - np.max(times, axis=0) - case.late).tolist() if table.num_rows else []
    return found
