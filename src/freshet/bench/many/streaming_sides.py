"""Structured Streaming's sides of ``freshet bench many``: a streaming query for each query, or one for all of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from freshet.bench.many.answers import Answer, answer_in, parquet_below
from freshet.bench.many.checkpoints import Checkpoint, written
from freshet.bench.many.queries import SCHEMA, STREAM
from freshet.bench.many.side import HEAP, Notes, Opening, Setting, Times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_AGAIN: Final = 0.25
_SETTINGS: Final = {"spark.driver.memory": HEAP, "spark.scheduler.mode": "FAIR"}


class _Streaming(ABC):
    """What both sides share: a session, and queries that are looked at by their checkpoints."""

    _opening: Opening

    def __init__(self, setting: Setting) -> None:
        from freshet.spark.session.session import open_session

        self._queries = setting.queries
        self._session = open_session("freshet bench many", setting.master, _SETTINGS, log_folder=setting.logs)
        self._running: list[StreamingQuery] = []

    def _source(self) -> DataFrame:
        return self._session.readStream.schema(SCHEMA).parquet(str(self._opening.input))

    def wait(self, files: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._is_done(files):
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN)
            for query in self._running:
                if not query.isActive:
                    raise RuntimeError(f"a streaming query has ended: {query.exception()}")
        return True

    @abstractmethod
    def _is_done(self, files: int) -> bool:
        """Whether every query has answered so many files."""

    def close(self) -> None:
        def stop(query: StreamingQuery) -> None:
            with suppress(Exception):  # one that was in a micro-batch complains of being stopped
                query.stop()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(stop, self._running))
        self._running.clear()


class QueriesSide(_Streaming):
    """A streaming query for each query, each with a FAIR pool, a checkpoint and a Parquet (or no-op) sink."""

    def open(self, opening: Opening) -> int:
        self._opening = opening
        until = time.monotonic() + opening.limit
        outputs = [opening.output / query.name for query in self._queries]
        self._marks = [output / "_spark_metadata" if opening.sinks else None for output in outputs]
        self._checkpoints = [
            Checkpoint(opening.folder / "checkpoints" / query.name, marks)
            for query, marks in zip(self._queries, self._marks, strict=True)
        ]
        for query, output, checkpoint in zip(self._queries, outputs, self._checkpoints, strict=True):
            if time.monotonic() > until:
                break
            self._session.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
            self._source().createOrReplaceTempView(STREAM)
            writer = self._session.sql(query.sql).writeStream.option("checkpointLocation", str(checkpoint.folder))
            sink = writer.format("parquet").option("path", str(output)) if opening.sinks else writer.format("noop")
            self._running.append(sink.start())
        return len(self._running)

    def _is_done(self, files: int) -> bool:
        return all(len(checkpoint.answered()) >= files for checkpoint in self._checkpoints)

    def notes(self, files: int) -> Notes:
        ready = np.stack([times(checkpoint.answered(), files) for checkpoint in self._checkpoints])
        rounds = [moment for checkpoint in self._checkpoints for moment in checkpoint.batches.values()]
        return Notes(ready, np.sort(rounds))

    def answers(self, files: int) -> list[Answer]:
        return [
            answer_in(checkpoint.answered(), written(marks) if marks else [])
            for checkpoint, marks in zip(self._checkpoints, self._marks, strict=True)
        ]


class ForeachSide(_Streaming):
    """One streaming query whose ``foreachBatch`` keeps the micro-batch in memory and runs the queries in turn."""

    def open(self, opening: Opening) -> int:
        self._opening = opening
        self._ended: list[dict[int, float]] = [{} for _ in self._queries]
        self._checkpoint = Checkpoint(opening.folder / "checkpoint")
        writer = self._source().writeStream.foreachBatch(self._answer)
        self._running.append(writer.option("checkpointLocation", str(self._checkpoint.folder)).start())
        return len(self._queries)

    def _answer(self, batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            batch.createOrReplaceTempView(STREAM)
            for place, query in enumerate(self._queries):
                writer = batch.sparkSession.sql(query.sql).write.mode("overwrite")
                if self._opening.sinks:
                    writer.parquet(str(self._folder(place, number)))
                else:
                    writer.format("noop").save()
                self._ended[place][number] = time.time()
        finally:
            batch.unpersist()

    def _folder(self, place: int, batch: int) -> Path:
        return self._opening.output / self._queries[place].name / f"{batch:06}"

    def _is_done(self, files: int) -> bool:
        return len(self._checkpoint.answered()) >= files

    def notes(self, files: int) -> Notes:
        ready = np.stack([times(self._answered(ended), files) for ended in self._ended])
        return Notes(ready, np.sort(list(self._checkpoint.batches.values())))

    def _answered(self, ended: Mapping[int, float]) -> dict[int, float]:
        return {number: moment for batch, moment in ended.items() for number in self._checkpoint.files(batch)}

    def answers(self, files: int) -> list[Answer]:
        def answer(place: int) -> Answer:
            ended = dict(self._ended[place])
            paths = [path for batch in ended for path in parquet_below(self._folder(place, batch))]
            return answer_in(self._answered(ended), paths)

        return [answer(place) for place in range(len(self._queries))]


def times(answered: Mapping[int, float], files: int) -> Times:
    """When each of so many files was answered.

    >>> times({1: 7.5}, 2)
    array([nan, 7.5])
    """
    return np.array([answered.get(number, np.nan) for number in range(files)])
