"""Panes against whole windows, release by release."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from freshet.bench.figures import quartiles, ratio
from freshet.bench.rig.feed import Arrival
from freshet.bench.stage import Stage
from freshet.engine.events import Committed, Event
from freshet.log import Log
from freshet.model import ARRIVAL, Instance, Stream, parse_schema
from freshet.sql import build_query

GROUPS: Final = 100
STREAM: Final = Stream("s", parse_schema("k int, v int"))
SQL: Final = "SELECT k, count(*) AS n, sum(v) AS total, max(v) AS high FROM s [RANGE {} s] GROUP BY k PERIOD 1 s"
SIDES: Final = {"panes": False, "windows": True}
"""Queries, each with whether it reads whole windows."""


class _UnitSeconds:
    """Notes for how long the units of each query keep a worker."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {name: [] for name in SIDES}

    def tell(self, event: Event) -> None:
        if isinstance(event, Committed):
            for stream in (stream for chain in event.chains for stream in chain.writes if stream in SIDES):
                self.seconds[stream].append(event.result.finished - event.result.started)


def measure_panes(
    stage: Stage, rate: int, window: int, releases: int, warm_up: int, master: str
) -> tuple[dict[str, Any], int]:
    """The cost of instances on both sides, their ratio, and the number of releases with different answers."""
    from freshet.bench.rig.engine import EngineRig

    noted, rng = _UnitSeconds(), np.random.default_rng(0)
    with stage.spark("periodic", master) as session, EngineRig(session, stage.folder / "panes", [STREAM]) as rig:
        rig.engine.observers.append(noted)
        now = time.time()
        for second in range(window + 2):
            rig.append({STREAM.name: _rows(rate, rng)}, now - window - 2 + second)
        for name, whole in SIDES.items():
            rig.log.declare(name, kind="output")
            query = build_query(name, SQL.format(window), {STREAM.name: STREAM.schema}, whole_windows=whole)
            rig.engine.add_query(query, {STREAM.name: STREAM.schema})
        seconds = releases + warm_up + 1
        came: list[Arrival] = [(second / 10, {STREAM.name: _rows(rate // 10, rng)}) for second in range(10 * seconds)]
        stage.say(f"{seconds} s, a release of both sides every second")
        rig.play(came, time.time(), float(seconds))
        rig.engine.work_off()
        different = _different(rig.log)
    costs = {name: some[warm_up:] for name, some in noted.seconds.items()}
    spreads = {f"{name}_ms": quartiles([1e3 * each for each in some]) for name, some in costs.items()}
    return {**spreads, "pane_cost_vs_window": ratio(_rounds(costs["panes"]), _rounds(costs["windows"]))}, different


def _rounds(seconds: list[float]) -> list[list[float]]:
    """Five rounds of successive releases: both sides are released together, so the rounds are the same on both."""
    return [part.tolist() for part in np.array_split(np.array(seconds), 5) if len(part)]


def _rows(count: int, rng: np.random.Generator) -> pa.Table:
    """Rows of the stream."""
    columns = {"k": rng.integers(0, GROUPS, count), "v": rng.integers(0, 1000, count)}
    return pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})


def _different(log: Log) -> int:
    """Releases for which the two sides have different answers."""
    found = {name: {each.release: _answer(log, each) for each in log.instances() if each.query == name}
             for name in SIDES}  # fmt: skip
    common = found["panes"].keys() & found["windows"].keys()
    assert len(common) > 1, "no release was answered on both sides"
    return sum(found["panes"][release] != found["windows"][release] for release in common)


def _answer(log: Log, one: Instance) -> Counter[tuple[Any, ...]]:
    rows = log.read(one.query, one.first, one.first + one.rows).drop_columns([ARRIVAL])
    return Counter(tuple(row.values()) for row in rows.to_pylist())
