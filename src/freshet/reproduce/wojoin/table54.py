"""Table 5.4 of WU §5.10: readings of seven sensor stations, replayed out of order and with lags, joined by their times.

The streams hold real readings of SensorScope, at their times rounded to the period, because no two stations ever
measure in the same second. A window on each input, just large enough for as many pairs, is the memory to save.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from freshet.quality.disorder import JoinInput, scrambling_factor
from freshet.reproduce.wojoin.pair import JoinSide, KeyRows, buffers
from freshet.reproduce.wojoin.strategies import FORMS, BufferForm, in_memory
from freshet.reproduce.wojoin.streams import KeyedStream
from freshet.simulation.workloads.traces import trace_folder

FILE: Final = "sensorscope_gsb2007_meteo_20070926_20071020.csv.gz"
PERIOD: Final = 120.0
"""Seconds between two readings of a station."""
STATIONS: Final = 7
"""Number of streams, as in WU Fig. 5.11: those stations with most readings."""
ACCURACY: Final = 0.996
"""Share of the pairs that windows must find, as in WU §3.6.1."""
PHASES: Final = 10
"""Parts of the 24 days with a disorder and a lag of their own."""
_TIMES: Final = 400


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A row of the table.

    Args:
        factor: Greatest scrambling factor.
        minutes: Greatest lag.
        seed: Draws both for each stream, and the disorder.
        phases: How often both are drawn anew, one phase after the other. The thesis leaves open whether they stay.
    """

    factor: int
    minutes: float
    seed: int
    phases: int = PHASES


def saved(run: ReplayRun) -> dict[BufferForm, float] | None:
    """The share of the memory that windows need and this join does not; None: the trace is not there."""
    readings = _readings()
    if readings is None:
        return None
    random = np.random.default_rng([run.seed, run.factor, round(run.minutes)])
    held = dict.fromkeys(FORMS, 0.0)
    depths: list[list[KeyRows]] = [[np.ones(1, np.int64)] for _ in readings]
    edges = np.linspace(0, max(int(keys[-1]) for keys in readings) + 1, run.phases + 1)
    for begin, end in pairwise(edges.tolist()):
        parts = [keys[(keys >= begin) & (keys < end)] - int(begin) for keys in readings]
        sides = [_replayed(random, keys, run) for keys in parts if len(keys)]
        times = np.linspace(0.0, max(float(side.stream.times[-1]) for side in sides), _TIMES // run.phases)[1:]
        for form in FORMS:
            held[form] += sum(float(each.mean()) for each in in_memory(sides, times, "plain", form)) / run.phases
        for place, own in enumerate(sides):
            depths[place] += [buffers(own, other).needed for other in sides if other is not own]
    windows = sum(float(np.quantile(np.concatenate(each), ACCURACY)) for each in depths)
    return {form: 1.0 - rows / windows for form, rows in held.items()}


def _replayed(random: np.random.Generator, keys: KeyRows, run: ReplayRun) -> JoinSide:
    factor, lag = int(random.integers(0, run.factor + 1)), float(random.uniform(0.0, run.minutes)) * 60.0
    order = np.argsort(np.arange(len(keys)) + random.random(len(keys)) * factor, kind="stable")
    # Rows come when the readings in their place would have come in order.
    stream = KeyedStream(keys[order], (keys * PERIOD + lag).astype(np.float64))
    return JoinSide(stream, JoinInput(scrambling_factor(stream.keys), 1.0 / PERIOD, 1.0))


@lru_cache
def _readings() -> list[KeyRows] | None:
    """The periods in which each station has measured."""
    folder = trace_folder()
    if folder is None or not Path(folder, FILE).exists():
        return None
    found = defaultdict[str, set[int]](set)
    with gzip.open(folder / FILE, "rt") as lines:
        for row in csv.DictReader(lines):
            found[row["station_id"]].add(int(float(row["epoch_s"]) // PERIOD))
    most = sorted(found, key=lambda station: (-len(found[station]), station))[:STATIONS]
    start = min(min(found[station]) for station in most)
    return [np.array(sorted(found[station])) - start for station in most]
