"""Freshet's side of ``freshet bench many``: an application that watches a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.parquet as pq

from freshet.app import App
from freshet.bench.many.answers import GivenRows, answer_in, answer_of, parquet_below
from freshet.bench.many.places import QueryProgress
from freshet.bench.many.queries import SCHEMA, STREAM, ManyQuery
from freshet.bench.many.side import HEAP, LOOK, Backlog, Notes, Opening, SideSetting, Times
from freshet.bench.rig.meter import ByKind, ProcessMeter
from freshet.log import LogReader, Retention

if TYPE_CHECKING:
    from freshet.app.running.run import Run

POLICY: Final = "everything"
ROLL: Final = 1.0
"""Seconds for which a sink gathers rows."""
TRAIN: Final = 500_000
"""Default maximum number of rows of a train."""
_KEEP: Final = Retention(history_age=None, history_bytes=None, bound_bytes=None)
_AGAIN: Final = 0.05
_SOON: Final = 0.005


class FreshetSide:
    """An application; its output is a log, with a Parquet sink for each query or without."""

    def __init__(self, setting: SideSetting) -> None:
        from freshet.spark.session.session import open_session

        self._queries, self._master = setting.queries, setting.master
        # Spark outlives the application of a trial, so that Java is warm.
        open_session("freshet bench many", setting.master, {"spark.driver.memory": HEAP}, log_folder=setting.logs)
        self._run: Run | None = None

    def open(self, opening: Opening) -> int:
        self._start(opening, self._queries)
        return len(self._queries)

    def _start(self, opening: Opening, queries: tuple[ManyQuery, ...]) -> None:
        self._opening = opening
        train = opening.train or TRAIN
        app = App("many", state=opening.folder / "state", policy=POLICY, max_train_rows=train)
        source = {
            "kind": "files", "path": str(opening.input), "format": "parquet",
            "order": "name", "settle": 0, "interval": LOOK,
        }  # fmt: skip
        app.stream(STREAM, SCHEMA, source=source, retention=_KEEP)
        for query in queries:
            sink = {"kind": "parquet", "path": str(opening.output / query.name), "every": ROLL}
            app.query(query.name, query.sql, sinks=[sink] if opening.sinks else [])
        self._places = QueryProgress(queries)
        self._run = app.start(master=self._master)
        self._run.observe(self._places)

    def wait(self, files: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._is_done(files * self._opening.rows):
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN)
            self._running.wait(0.0)  # raises the error that has ended the engine
        return True

    def _is_done(self, rows: int) -> bool:
        """Whether everything is in the log and in the sinks."""
        return self._passed(rows) and self._running.sunk()

    def _passed(self, rows: int) -> bool:
        return self._places.commits[-1].least >= rows

    @property
    def _running(self) -> Run:
        assert self._run is not None
        return self._run

    def notes(self, files: int) -> Notes:
        ends = self._ends(files)
        moments = np.array([each.time for each in self._places.commits])
        cursors = np.array([each.places for each in self._places.commits])
        late = np.append(moments, np.nan)
        ready = np.stack([late[np.searchsorted(column, ends)] for column in cursors.T])
        return Notes(ready, moments[1:], self._sunk(files) if self._opening.sinks else None)

    def _ends(self, files: int) -> Times:
        """For each file, the offset behind its last row."""
        numbers = self._running.read(STREAM)["id"].to_numpy() // self._opening.rows
        ends = np.full(files, np.inf)
        ends[numbers] = np.arange(1, len(numbers) + 1)
        return ends

    def _sunk(self, files: int) -> Times:
        sunk = np.full((len(self._queries), files), np.nan)
        for place, query in enumerate(self._queries):
            for path, moment in _visible(self._opening.output / query.name):
                ids = pq.read_table(path, columns=["id"], use_threads=False)["id"].to_numpy()
                sunk[place, np.unique(ids // self._opening.rows)] = moment
        return sunk

    def answers(self, files: int) -> list[GivenRows]:
        numbers = range(files)
        if self._opening.sinks:
            folders = [self._opening.output / query.name for query in self._queries]
            return [answer_in(numbers, parquet_below(folder)) for folder in folders]
        return [answer_of(numbers, self._running.read(query.name)) for query in self._queries]

    def close(self) -> None:
        self._running.stop()
        self._run = None

    def work_off(self, opening: Opening, files: Sequence[Path], warm: int) -> Backlog:
        """Takes files into the log while no query runs, then answers them, one train for each. The first ``warm`` and
        the last ones are not measured, so that both ends have the same amount of begun but uncommitted work."""
        rows = len(files) * opening.rows
        self._start(opening, ())
        meter = ProcessMeter()
        began = meter.cpu()
        with LogReader(opening.folder / "state") as log:
            for path in files:
                os.link(path, opening.input / path.name)
            _until(lambda: log.end(STREAM) >= rows)
        taken_in = meter.cpu() - began
        self.close()
        self._start(opening, self._queries)
        first, last = self._mark(warm * opening.rows), self._mark(rows - 2 * opening.rows)
        _until(lambda: self._passed(rows))
        self.close()
        done = last.rows - first.rows
        return Backlog(done, last.time - first.time, last.cpu - first.cpu, taken_in.times(done / rows))

    def _mark(self, rows: int) -> _Mark:
        """The present figures, once this many rows are answered."""
        _until(lambda: self._passed(rows))
        last = self._places.commits[-1]
        return _Mark(last.time, last.least, ProcessMeter().cpu())


@dataclass(frozen=True, slots=True)
class _Mark:
    time: float
    rows: int
    cpu: ByKind


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(_SOON)


def _visible(folder: Path) -> list[tuple[Path, float]]:
    """The files of a sink, each with the moment at which it got its name."""
    return [(path, path.stat().st_ctime) for path in sorted(folder.glob("[!._]*.parquet"))]
