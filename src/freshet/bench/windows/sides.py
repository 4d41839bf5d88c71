"""Freshet and Structured Streaming over the same windows: a replay at full speed, and a live feed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshet.bench.rig.engine import EngineRig
from freshet.bench.rig.feed import Arrival, Chunk, feed
from freshet.bench.rig.streaming import StreamingRig
from freshet.bench.windows.load import Case
from freshet.engine.events import Committed, Event
from freshet.log import Log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUT: Final = "out"
CHUNK: Final = 0.25
"""Seconds of a live feed that come at once."""
BATCH_SECONDS: Final = 5
"""Seconds of event time in a micro-batch of a replay: about the time that one takes at the sustained rate."""


class WindowSide(Protocol):
    """A system under test; every call starts from nothing."""

    def replay(self, case: Case, before: Sequence[Chunk], timed: Sequence[Chunk]) -> tuple[float, int]:
        """Works off ``before``, then ``timed``; returns the seconds of the latter, and the number of output rows."""

    def live(self, case: Case, rate: float, seconds: float) -> list[float]:
        """Feeds rows at the pace of their event time; returns how long each output tuple took, in seconds, from when
        it could be known until it could be read."""


@dataclass(frozen=True, slots=True)
class FreshetWindows:
    """An engine over a log of its own."""

    session: SparkSession
    folder: Path

    def replay(self, case: Case, before: Sequence[Chunk], timed: Sequence[Chunk]) -> tuple[float, int]:
        with self._open(case) as rig:
            for chunk in before:
                rig.append(chunk)
            rig.work_off()
            for chunk in timed:
                rig.append(chunk)
            began = time.perf_counter()
            rig.work_off()
            return time.perf_counter() - began, rig.log.end(OUT)

    def live(self, case: Case, rate: float, seconds: float) -> list[float]:
        with self._open(case) as rig:
            ends = _Ends(rig.log)
            rig.engine.observers.append(ends)
            start = time.time()
            rig.play(_arrivals(case, rate, start, seconds), start, seconds)
            table = rig.log.read(OUT, 0, ends.found[-1] if ends.found else 0)
        places = np.searchsorted(ends.found, np.arange(table.num_rows), side="right")
        return _latencies(case, table, np.array(ends.moments)[places])

    def _open(self, case: Case) -> EngineRig:
        rig = EngineRig(self.session, self.folder / "freshet", case.declared, slots=2)
        rig.add_queries({OUT: case.sql})
        return rig


class _Ends:
    """Notes how far the output has come after each commit."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.found: list[int] = []
        self.moments: list[float] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, Committed):
            self.found.append(self._log.end(OUT))
            self.moments.append(event.now)


@dataclass(frozen=True, slots=True)
class StreamingWindows:
    """A streaming query from folders of Parquet files to one folder for each batch, with a checkpoint."""

    session: SparkSession
    folder: Path

    def replay(self, case: Case, before: Sequence[Chunk], timed: Sequence[Chunk]) -> tuple[float, int]:
        with self._open(case) as rig:
            write = _Writer(rig.output(OUT), {})
            for chunk in before:
                rig.write(chunk)
            rig.run(OUT, _program(case, rig, BATCH_SECONDS), write)
            for chunk in timed:
                rig.write(chunk)
            began = time.perf_counter()
            rig.run(OUT, _program(case, rig, BATCH_SECONDS), write)
            seconds = time.perf_counter() - began
            return seconds, self.session.read.parquet(str(rig.output(OUT) / "*")).count()

    def live(self, case: Case, rate: float, seconds: float) -> list[float]:
        found: list[float] = []
        moments: dict[int, float] = {}
        with self._open(case) as rig:
            rig.start(OUT, _program(case, rig), _Writer(rig.output(OUT), moments))
            start = time.time()
            feed(_arrivals(case, rate, start, seconds), start, rig.write)
            rig.stop()
            for batch, moment in moments.items():
                rows = pq.read_table(rig.output(OUT) / str(batch))
                found += _latencies(case, rows, np.full(rows.num_rows, moment))
        return found

    def _open(self, case: Case) -> StreamingRig:
        return StreamingRig(self.session, self.folder, case.streams)


def _program(case: Case, rig: StreamingRig, most_files: int | None = None) -> DataFrame:
    return case.streaming({name: rig.source(name, most_files) for name in case.streams})


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes each micro-batch to a folder of its own, and notes when it could be read."""

    output: Path
    moments: dict[int, float]

    def __call__(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(self.output / str(batch)))
        self.moments[batch] = time.time()


def _arrivals(case: Case, rate: float, start: float, seconds: float) -> Iterator[Arrival]:
    """Rows in chunks that come when their event times have just passed."""
    for number in range(math.ceil(seconds / CHUNK)):
        at = start + number * CHUNK
        yield (number + 1) * CHUNK, case.rows(at, at + CHUNK, rate)


def _latencies(case: Case, table: pa.Table, seen: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    # Spark writes timestamps to Parquet in a form that is read as nanoseconds.
    exact = [pc.cast(table[name], pa.timestamp("us", tz="UTC"), safe=False) for name in case.ready]
    times = [np.asarray(pc.cast(each, pa.int64())) / 1e6 for each in exact]
    found: list[float] = (seen - np.max(times, axis=0) - case.late).tolist() if table.num_rows else []
    return found
