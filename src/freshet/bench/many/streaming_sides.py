"""Structured Streaming's sides of ``freshet bench many``: a streaming query for each query, or one for all of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from freshet.bench.many.answers import GivenRows, answer_in, parquet_below
from freshet.bench.many.queries import SCHEMA, STREAM
from freshet.bench.many.side import HEAP, Notes, Opening, SideSetting, Times
from freshet.bench.rig.checkpoints import Checkpoint, written
from freshet.bench.rig.streaming import StreamingRig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AGAIN: Final = 0.25
_SETTINGS: Final = {"spark.driver.memory": HEAP, "spark.scheduler.mode": "FAIR"}


class _Streaming(ABC):
    """What both sides share: a session, and queries that are observed by their checkpoints."""

    _rig: StreamingRig

    def __init__(self, setting: SideSetting) -> None:
        from freshet.spark.session.session import open_session

        self._queries = setting.queries
        self._session = open_session("freshet bench many", setting.master, _SETTINGS, log_folder=setting.logs)

    def open(self, opening: Opening) -> int:
        self._rig = StreamingRig(self._session, opening.folder, {opening.input.name: SCHEMA})
        return self._start(opening)

    @abstractmethod
    def _start(self, opening: Opening) -> int:
        """Starts all queries; returns how many could be started within the limit."""

    def wait(self, files: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._is_done(files):
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN)
            self._rig.check()
        return True

    @abstractmethod
    def _is_done(self, files: int) -> bool:
        """Whether every query has answered this many files."""

    def close(self) -> None:
        self._rig.stop()


class QueriesSide(_Streaming):
    """A streaming query for each query, each with a FAIR pool, a checkpoint and a Parquet (or no-op) sink."""

    def _start(self, opening: Opening) -> int:
        rig, until = self._rig, time.monotonic() + opening.limit
        names = [query.name for query in self._queries]
        self._marks = [rig.output(name) / "_spark_metadata" if opening.sinks else None for name in names]
        self._checkpoints = [
            Checkpoint(rig.checkpoint(name), marks) for name, marks in zip(names, self._marks, strict=True)
        ]
        for started, query in enumerate(self._queries):
            if time.monotonic() > until:
                return started
            self._session.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
            rig.source(opening.input.name).createOrReplaceTempView(STREAM)
            rig.start(query.name, self._session.sql(query.sql), "parquet" if opening.sinks else "noop")
        return len(self._queries)

    def _is_done(self, files: int) -> bool:
        return all(len(checkpoint.answered()) >= files for checkpoint in self._checkpoints)

    def notes(self, files: int) -> Notes:
        ready = np.stack([times(checkpoint.answered(), files) for checkpoint in self._checkpoints])
        rounds = [moment for checkpoint in self._checkpoints for moment in checkpoint.batches.values()]
        return Notes(ready, np.sort(rounds))

    def answers(self, files: int) -> list[GivenRows]:
        return [
            answer_in(checkpoint.answered(), written(marks) if marks else [])
            for checkpoint, marks in zip(self._checkpoints, self._marks, strict=True)
        ]


class ForeachSide(_Streaming):
    """One streaming query with a ``foreachBatch`` that keeps the micro-batch in memory and runs the queries in turn."""

    def _start(self, opening: Opening) -> int:
        self._opening = opening
        self._ended: list[dict[int, float]] = [{} for _ in self._queries]
        self._checkpoint = Checkpoint(self._rig.checkpoint("all"))
        self._rig.start("all", self._rig.source(opening.input.name), self._answer)
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
        return self._rig.output(self._queries[place].name) / f"{batch:06}"

    def _is_done(self, files: int) -> bool:
        return len(self._checkpoint.answered()) >= files

    def notes(self, files: int) -> Notes:
        ready = np.stack([times(self._answered(ended), files) for ended in self._ended])
        return Notes(ready, np.sort(list(self._checkpoint.batches.values())))

    def _answered(self, ended: Mapping[int, float]) -> dict[int, float]:
        return {number: moment for batch, moment in ended.items() for number in self._checkpoint.files(batch)}

    def answers(self, files: int) -> list[GivenRows]:
        def answer(place: int) -> GivenRows:
            ended = dict(self._ended[place])
            paths = [path for batch in ended for path in parquet_below(self._folder(place, batch))]
            return answer_in(self._answered(ended), paths)

        return [answer(place) for place in range(len(self._queries))]


def times(answered: Mapping[int, float], files: int) -> Times:
    """When each of the first ``files`` files was answered.

    >>> times({1: 7.5}, 2)
    array([nan, 7.5])
    """
    return np.array([answered.get(number, np.nan) for number in range(files)])
