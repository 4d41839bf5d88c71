"""The scale part of ``freshet bench state``: a backlog over a large state, with one worker and with several."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.bench.figures import Spread, extremes, ratio
from freshet.bench.interleave import interleave
from freshet.bench.rig.meter import ProcessMeter
from freshet.bench.stage import Stage
from freshet.model import Stream, parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from freshet.bench.rig.engine import EngineRig

WORKERS: Final = (1, 2)
QUERIES: Final = {
    "groups": (
        "SELECT k, count(*) AS n, avg(v) AS mean, max(v) AS most, window_end "
        "FROM a [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY k"
    ),
    "distinct": (
        "SELECT k % 10000 AS g, count(DISTINCT k) AS n, approx_percentile(v, 0.5) AS middle, window_end "
        "FROM a [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY k % 10000"
    ),
    "join": "SELECT a.k, a.v, b.v AS w FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.k = b.k",
}
_SCHEMA: Final = "ts timestamp, k bigint, v double"
_EPOCH: Final = 1_699_999_200_000_000
"""A boundary of the windows."""
_TICK: Final = 0.01
"""The least that systems count, in seconds of CPU."""
_FIRST: Final = 2
"""Trains before those that are measured: with them the state becomes as large as it stays, and is divided."""


class ScaleTrial(NamedTuple):
    """Seconds, and seconds of CPU of all processes, that a backlog took; rows that came out, parts of the state, and
    the ways that units went."""

    seconds: float
    cpu: float
    rows_out: int
    parts: int
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScaleBacklog:
    """Trains over one query.

    Args:
        query: Its name in :data:`QUERIES`.
        groups: Number of different keys, and rows of a train.
        trains: Number of trains that are measured.
    """

    query: str
    groups: int
    trains: int

    @property
    def streams(self) -> tuple[str, ...]:
        """What the query reads."""
        return ("a", "b") if self.query == "join" else ("a",)

    def train(self, number: int) -> Mapping[str, pa.Table]:
        """The rows of a train: of a join half of them in each stream.

        >>> train = ScaleBacklog("join", 1000, 2).train(0)
        >>> [rows.num_rows for rows in train.values()], train["a"].column_names
        ([500, 500], ['ts', 'k', 'v'])
        """
        return {name: self._rows(number, place) for place, name in enumerate(self.streams)}

    def _rows(self, number: int, place: int) -> pa.Table:
        draw = np.random.default_rng([number, place])
        rows = self.groups // len(self.streams)
        stamps = pa.array(np.full(rows, _EPOCH + number)).cast(pa.timestamp("us", tz="UTC"))
        # Of the keys of a join only one in some is remembered, so that a row meets about one other.
        keys = self.groups * (1 if self.query != "join" else _FIRST + self.trains)
        return pa.table({"ts": stamps, "k": draw.integers(0, keys, rows), "v": draw.random(rows)})


def measure_scale(
    stage: Stage, session: SparkSession, backlogs: Mapping[str, ScaleBacklog], rounds: int
) -> tuple[dict[str, float | Spread], dict[str, Any]]:
    """Works off each backlog with one worker and with two, in turn; returns figures and notes."""
    figures: dict[str, float | Spread] = {}
    notes: dict[str, Any] = {}
    numbers = count()
    for name, backlog in backlogs.items():
        with stage.steps(f"scale, {name}", rounds) as advance:
            sides = {
                str(workers): lambda workers=workers, backlog=backlog: _trial(
                    stage, session, backlog, workers, next(numbers)
                )
                for workers in WORKERS
            }
            found: dict[str, list[ScaleTrial]] = interleave(sides, rounds, advance)
        end = "" if name == "groups" else f"_{name}"
        figures |= dict(_figures(end, found, backlog))
        notes[f"scale_parts{end}"] = {workers: trials[-1].parts for workers, trials in found.items()}
        notes[f"scale_ways{end}"] = {workers: trials[-1].ways for workers, trials in found.items()}
        if len({trial.rows_out for trials in found.values() for trial in trials}) != 1:
            raise RuntimeError(f"{name}: the sides gave out different numbers of rows: nothing was measured")
    return figures, notes


def _figures(
    end: str, found: Mapping[str, list[ScaleTrial]], backlog: ScaleBacklog
) -> Iterator[tuple[str, float | Spread]]:
    one, *others = (str(workers) for workers in WORKERS)
    for several in others:
        seconds = [[[trial.seconds] for trial in found[side]] for side in (one, several)]
        cpu = [[[trial.cpu] for trial in found[side]] for side in (several, one)]
        yield f"scale_{several}{end}", ratio(*seconds)
        yield f"scale_{several}_cpu{end}", ratio(*cpu)
    for side, trials in found.items():
        rates = [backlog.groups * backlog.trains / trial.seconds for trial in trials]
        yield f"scale_rows_per_second_{side}{end}", extremes(rates)


def _trial(stage: Stage, session: SparkSession, backlog: ScaleBacklog, workers: int, number: int) -> ScaleTrial:
    from freshet.bench.rig.engine import EngineRig

    streams = [Stream(name, parse_schema(_SCHEMA), event_time="ts") for name in backlog.streams]
    state = stage.folder / f"scale-{number}"
    with EngineRig(session, state, streams, most_rows=backlog.groups, resident=workers) as rig:
        rig.add_queries({backlog.query: QUERIES[backlog.query]})
        for train in range(_FIRST):
            rig.append(backlog.train(train))
            rig.work_off()
        for train in range(_FIRST, _FIRST + backlog.trains):
            rig.append(backlog.train(train))
        meter = ProcessMeter()
        before, began = meter.cpu(), time.perf_counter()
        rig.work_off()
        seconds, cpu = time.perf_counter() - began, max(_TICK, (meter.cpu() - before).total)
        ways = tuple(sorted(rig.engine.board.calls_by_way))
        return ScaleTrial(seconds, cpu, rig.log.end(backlog.query), _parts(rig), ways)


def _parts(rig: EngineRig) -> int:
    """The number of parts in which the state of the fold lies."""
    folds = rig.engine.board.folds()
    return max(fold.parts for fold in folds)
