"""A step of a join that remembers much, in a resident that has kept the state, and as a job that has not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from freshet.bench.figures import Spread, quartiles, ratio
from freshet.bench.stage import Stage
from freshet.model import KeyOrder, Stream, parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from freshet.bench.rig.engine import EngineRig

TRAIN: Final = 1_000
"""Rows of a train."""
_SQL: Final = "SELECT a.k, a.n, b.n AS m FROM a, b WHERE a.k = b.k AND a.u = b.u"
_PIECE: Final = 250_000
_WARM_UP: Final = 4
"""Steps of a round before those that are measured: two for each input."""
SIDES: Final = {"resident": 1, "off": "off"}


def measure_steps(
    stage: Stage, session: SparkSession, rows: int, rounds: int, steps: int
) -> tuple[dict[str, float | Spread], dict[str, Any]]:
    """Seconds of steps with residents and without, a side after the other in each round.

    Args:
        stage: Where.
        session: Where they run.
        rows: Number of remembered rows of both inputs together.
        rounds: How often each side is set up.
        steps: Measured steps of a round.
    """
    seconds: dict[str, list[list[float]]] = {side: [] for side in SIDES}
    ways: dict[str, set[str]] = {side: set() for side in SIDES}
    with stage.steps(f"steps over {rows:,} rows", rounds * len(SIDES)) as advance:
        for number in range(rounds):
            for side, resident in SIDES.items():
                took, went = _round(stage, session, f"{side}-{number}", resident, rows, steps)
                seconds[side].append(took)
                ways[side] |= went
                advance()
    figures: dict[str, float | Spread] = {"step_vs_rebuild": ratio(seconds["resident"], seconds["off"])}
    for side, found in seconds.items():
        figures[f"step_ms_{side}"] = quartiles([each for took in found for each in took]).times(1e3)
    return figures, {"step_ways": {side: sorted(found) for side, found in ways.items()}, "step_remembered": rows}


def _round(
    stage: Stage, session: SparkSession, name: str, resident: Any, rows: int, steps: int
) -> tuple[list[float], set[str]]:
    from freshet.bench.rig.engine import NO_HISTORY, EngineRig

    schema = parse_schema("k bigint, u bigint, n bigint")
    # So far out of order that no row is ever forgotten.
    streams = [Stream(name, schema, order=KeyOrder("k", rows=10 * rows)) for name in "ab"]
    with EngineRig(session, stage.folder / name, streams, retention=NO_HISTORY, resident=resident) as rig:
        rig.add_queries({"q": _SQL})
        for first in range(0, rows // 2, _PIECE):
            rig.append(_rows(first, min(_PIECE, rows // 2 - first)))
            rig.work_off()
        [fold] = rig.engine.board.folds()
        if sum(rig.engine.time.rows_by_port(fold)) != 2 * (rows // 2):
            raise RuntimeError("rows were forgotten: nothing was measured")
        for number in range(_WARM_UP):
            _step(rig, rows, number)
        took = [_step(rig, rows, _WARM_UP + number) for number in range(steps)]
        return took, set(rig.engine.board.calls_by_way)


def _step(rig: EngineRig, rows: int, number: int) -> float:
    """Seconds from when a train is in the log until its rows are committed; each input gets one in turn."""
    found = _rows(rows // 2 + number // 2 * TRAIN, TRAIN)
    rig.append({"ab"[number % 2]: found["ab"[number % 2]]})
    before = rig.log.end("q")
    began = time.perf_counter()
    rig.work_off()
    seconds = time.perf_counter() - began
    made = rig.log.end("q") - before
    if made != (TRAIN if number % 2 else 0):
        raise RuntimeError(f"a step made {made} rows: the join is wrong")
    return seconds


def _rows(first: int, count: int) -> Mapping[str, pa.Table]:
    """Rows of both streams; each meets one of the other."""
    keys = np.arange(first, first + count)
    table = pa.table({"k": keys, "u": keys % 977, "n": keys})
    return {"a": table, "b": table}
