"""The part of ``freshet bench constants`` on joins: one task, with the states kept or read again, and a shuffle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.bench.figures import Spread, quartiles, ratio
from freshet.bench.interleave import interleave
from freshet.bench.stage import Stage
from freshet.model import Stream, parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from freshet.bench.rig.engine import EngineRig

JOIN: Final = "SELECT a.k, a.v, b.v AS w FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.k = b.k"
_SCHEMA: Final = "ts timestamp, k bigint, v double"
_EPOCH: Final = 1_699_999_200_000_000
_PIECE: Final = 500_000
"""Maximum number of rows that come at once while the states grow."""
_WARM: Final = 2
"""Trains of a trial that are not measured."""


class JoinWay(NamedTuple):
    """How a join runs.

    Args:
        kept_bytes: Memory in which the worker keeps states.
        join_bytes: Bytes from which on it is shuffled, if they are not kept.
    """

    kept_bytes: int
    join_bytes: int


SIDES: Final[Mapping[str, JoinWay]] = {
    "kept": JoinWay(2**40, 2**40), "again": JoinWay(0, 2**40), "shuffled": JoinWay(0, 0),
}  # fmt: skip


class JoinTrials:
    """Runs the same trains over the same states in each of the :data:`SIDES`.

    Args:
        stage: The stage of the benchmark.
        session: Where it runs.
        rounds: How often each side runs.
        trains: Number of trains that are measured in each.
        rows: Rows of a train.
    """

    def __init__(self, stage: Stage, session: SparkSession, rounds: int, trains: int, rows: int) -> None:
        self._stage, self._session, self._rounds, self._trains, self._rows = stage, session, rounds, trains, rows
        self._numbers = count()

    def figures(self, remembered: int, advance: Callable[[], None]) -> dict[str, float | Spread]:
        """Seconds of a step by side, and how many times as fast a shuffle is as one task."""
        sides = {name: partial(self._seconds, side, remembered) for name, side in SIDES.items()}
        found = interleave(sides, self._rounds, advance)
        seconds = {name: [second for some in each for second in some] for name, each in found.items()}
        return {
            **{f"join_s_{name}_{remembered}": quartiles(each) for name, each in seconds.items()},
            f"shuffle_gain_kept_{remembered}": ratio(found["kept"], found["shuffled"]),
            f"shuffle_gain_again_{remembered}": ratio(found["again"], found["shuffled"]),
        }

    def _seconds(self, side: JoinWay, remembered: int) -> list[float]:
        """Seconds of each of the measured steps."""
        from freshet.bench.rig.engine import EngineRig

        streams = [Stream(name, parse_schema(_SCHEMA), event_time="ts") for name in "ab"]
        state, options = self._stage.folder / f"joins-{next(self._numbers)}", _options(side)
        with EngineRig(self._session, state, streams, most_rows=10 * _PIECE, resident=1, **options) as rig:
            rig.add_queries({"q": JOIN})
            for first in range(0, remembered // 2, _PIECE):
                rows = min(_PIECE, remembered // 2 - first)
                rig.append({name: join_rows(first, rows, remembered // 2, place) for place, name in enumerate("ab")})
                rig.work_off()
            jobs, seconds = _spark_jobs(rig), list[float]()
            for number in range(_WARM + self._trains):
                rig.append({"a": join_rows(remembered + number, self._rows, remembered // 2, 0)})
                # A unit that only writes a state anew has no rows.
                seconds += [step.seconds for step in rig.work_off() if any(run.rows_in for _, run in step.runs)]
            jobs = _spark_jobs(rig) - jobs
        wanted = _WARM + self._trains
        if len(seconds) != wanted or (jobs < wanted if side == SIDES["shuffled"] else jobs):
            raise RuntimeError(
                f"{len(seconds)} steps for {wanted} trains, {jobs} of them Spark jobs: this means nothing"
            )
        return seconds[_WARM:]


def _spark_jobs(rig: EngineRig) -> int:
    """Number of units that were not given to residents."""
    return sum(each.calls for way, each in rig.engine.board.calls_by_way.items() if way != "resident")


def _options(side: JoinWay) -> dict[str, Any]:
    return {"kept_bytes": side.kept_bytes, "most_join_bytes": side.join_bytes}


def join_rows(seed: int, rows: int, keys: int, place: int) -> pa.Table:
    """Rows of which each meets about one of the other stream.

    >>> join_rows(0, 3, 10, 1).column_names
    ['ts', 'k', 'v']
    """
    draw = np.random.default_rng([seed, place])
    stamps = pa.array(np.full(rows, _EPOCH)).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": stamps, "k": draw.integers(0, keys, rows), "v": draw.random(rows)})
