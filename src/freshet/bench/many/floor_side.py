"""The floor's side of ``freshet bench many``: a loop that answers files as they come."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.bench.many.answers import GivenRows, answer_of
from freshet.bench.many.floor import answer, read, write
from freshet.bench.many.side import LOOK, Backlog, Notes, Opening, SideSetting
from freshet.bench.rig.checkpoints import number_of
from freshet.bench.rig.meter import ByKind

_AGAIN: Final = 0.05


class FloorSide:
    """A thread that looks into the folder; all outputs of a file go into one file, synced to disk."""

    def __init__(self, setting: SideSetting) -> None:
        self._queries = setting.queries

    def open(self, opening: Opening) -> int:
        self._opening = opening
        opening.output.mkdir()
        self._ended: dict[int, float] = {}
        self._failed: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="floor", daemon=True)
        self._thread.start()
        return len(self._queries)

    def _watch(self) -> None:
        try:
            while not self._stop.wait(LOOK):
                for path in sorted(self._opening.input.glob("[!_]*.parquet")):
                    number = number_of(str(path))
                    if number not in self._ended:
                        self._answer(path)
                        self._ended[number] = time.time()
        except BaseException as error:
            self._failed = error

    def _answer(self, path: Path) -> None:
        columns = read(path)
        hidden = self._opening.output / f"_{path.stem}"
        write([answer(query, columns) for query in self._queries], hidden)
        hidden.rename(self._opening.output / f"{path.stem}.arrow")

    def wait(self, files: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while len(self._ended) < files:
            if self._failed is not None:
                raise self._failed
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN)
        return True

    def notes(self, files: int) -> Notes:
        ready = np.array([self._ended.get(number, np.nan) for number in range(files)])
        return Notes(np.tile(ready, (len(self._queries), 1)), np.sort(list(self._ended.values())))

    def answers(self, files: int) -> list[GivenRows]:
        found: list[list[pa.Table]] = [[] for _ in self._queries]
        for path in sorted(self._opening.output.glob("*.arrow")):
            with path.open("rb") as file:
                for tables in found:
                    tables.append(pa.ipc.open_stream(file).read_all())
        return [answer_of(self._ended, pa.concat_tables(tables)) for tables in found]

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def work_off(self, opening: Opening, files: Sequence[Path], warm: int) -> Backlog:
        """Answers files one after the other. The first ``warm`` and the last two are not measured, as on the other
        side."""
        self._opening = opening
        opening.output.mkdir()
        for path in files[:warm]:
            self._answer(path)
        # One process does all the work, and its own clock is finer than the system's ticks for all processes.
        began, before = time.time(), time.process_time()
        measured = files[warm : len(files) - 2]
        for path in measured:
            self._answer(path)
        used = ByKind(time.process_time() - before)
        return Backlog(len(measured) * opening.rows, time.time() - began, used, ByKind())
