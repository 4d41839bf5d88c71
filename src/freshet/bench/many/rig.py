"""What ``freshet bench many`` runs on: the sides by name, each in its process, and the files that feed them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from freshet.bench.many.answers import Expected
from freshet.bench.many.files import INTERVAL, Files
from freshet.bench.many.floor import check_selectivities
from freshet.bench.many.floor_side import FloorSide
from freshet.bench.many.freshet_side import FreshetSide
from freshet.bench.many.queries import make_queries, make_rows
from freshet.bench.many.side import Backlog, Opening, Remote, Side, SideFailed, SideHangs, SideSetting
from freshet.bench.many.streaming_sides import ForeachSide, QueriesSide
from freshet.bench.many.trial import WARM, Feed, NotGoing, TrialOutcome, run_trial
from freshet.bench.stage import Stage

SIDES: Final[Mapping[str, Callable[[SideSetting], Side]]] = {
    "freshet": FreshetSide,
    "queries": QueriesSide,
    "foreach": ForeachSide,
    "floor": FloorSide,
}
"""The sides that are compared: (a), (b), (c) and (d)."""
STREAMING: Final = ("queries", "foreach")
_SELECTED: Final = 20_000
"""Number of rows with which selectivities are checked."""


class Rig:
    """The sides over a number of queries; a side's process starts when it is first needed.

    Args:
        stage: The stage of the benchmark.
        queries: Number of queries.
        master: Spark master.
        seconds: Seconds of input in a trial, after the warm-up.
        limit: Seconds after which a side that has not got going is given up.
    """

    def __init__(self, stage: Stage, queries: int, master: str, seconds: float, limit: float) -> None:
        self.queries = queries
        self._stage, self._seconds, self._limit = stage, seconds, limit
        self._folder = stage.folder / f"{queries}-queries"
        asked = tuple(make_queries(queries))
        check_selectivities(asked, make_rows(0, _SELECTED))
        self._setting = SideSetting(asked, master, stage.logs)
        self._remotes: dict[str, Remote] = {}
        self._feeds: dict[int, tuple[Files, Expected]] = {}
        self._trials = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(list(self._remotes))

    def end(self, sides: Iterable[str]) -> None:
        """Ends the processes of sides."""
        for side in sides:
            if side in self._remotes:
                self._remotes.pop(side).end()

    def trial(self, side: str, rate: float, sinks: bool) -> TrialOutcome:
        """Runs a trial.

        Raises:
            NotGoing: The side did not get going, or a side of Structured Streaming failed; its process has ended.
        """
        files, expected = self._input(round(rate * INTERVAL))
        feed = Feed(files, rate, sinks, self._limit)
        try:
            return run_trial(side, self._remote(side), feed, self.queries, self._next(), expected)
        except NotGoing:
            self.end([side])
            raise
        except SideFailed as error:
            self.end([side])
            if side in STREAMING or isinstance(error, SideHangs):
                raise NotGoing(str(error).strip().splitlines()[-1]) from error
            raise

    def work_off(self, side: str, rows: int, trains: int, warm: int) -> Backlog:
        """Makes a side work off waiting trains; the first ``warm`` and the last two are not measured."""
        folder = self._folder / f"trains-of-{rows}"
        files = Files(folder, rows, trains) if folder.exists() else Files.write(folder, rows, trains)
        opening = Opening(self._next(), rows, False, self._limit, train=rows)
        opening.input.mkdir(parents=True)
        arguments = opening, files.paths(range(trains)), warm
        found: Backlog = self._remote(side).call("work_off", *arguments, within=self._limit * trains)
        shutil.rmtree(opening.folder, ignore_errors=True)
        return found

    def _remote(self, side: str) -> Remote:
        if side not in self._remotes:
            self._remotes[side] = Remote(SIDES[side], self._setting)
        return self._remotes[side]

    def _input(self, rows: int) -> tuple[Files, Expected]:
        if rows not in self._feeds:
            count = WARM + max(3, round(self._seconds / INTERVAL))
            files = Files.write(self._folder / f"files-of-{rows}", rows, count)
            self._feeds[rows] = files, Expected(self._setting.queries, files)
        return self._feeds[rows]

    def _next(self) -> Path:
        self._trials += 1
        return self._folder / f"trial-{self._trials}"
