"""How late the rows of Query 1 come (WU Fig. 3.15), by the engine itself, in this process.

Rows come in batches of 20 ms, the mean time between two of a stream, and all that can run does so after each. The
latency of a row is the time from the arrival of its last tuple until the end of the batch after which it is there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.app import App
from freshet.model.join_buffer import JoinBuffer
from freshet.reproduce.wojoin.streams import MEAN_GAP, KeyedStream, keyed_stream
from freshet.testing import LocalRun

MODES: Final[tuple[JoinBuffer, ...]] = ("ram", "sorted", "log", "hybrid")
SECONDS: Final = 5.0
_FACTOR: Final = 100
_BURSTS: Final = ((), ((1.0, 3.0, 1 / 8),), ())
"""S2 comes at an eighth of its rate for two seconds, so that the others run ahead."""
_NAMES: Final = "abc"
_SQL: Final = "SELECT a.n, b.n AS m, c.n AS k FROM a, b, c WHERE a.epoch = b.epoch AND b.epoch = c.epoch"


@dataclass(frozen=True, slots=True)
class LatencyRun:
    """What is run: a way of buffering, over streams that a seed draws."""

    buffer: JoinBuffer
    seed: int


@dataclass(frozen=True, slots=True)
class LatencyOutcome:
    """What came out.

    Args:
        rows: Number of rows that came until the streams ended.
        mean: Their mean latency in seconds.
        late: Share of them that came later than with the batch of their last tuple.
    """

    rows: int
    mean: float
    late: float


def latencies(run: LatencyRun) -> LatencyOutcome:
    """Runs the join batch by batch."""
    random = np.random.default_rng(run.seed)
    streams = [keyed_stream(random, SECONDS, _FACTOR, bursts=each) for each in _BURSTS]
    app = App("query-1")
    for name in _NAMES:
        app.stream(name, "epoch bigint, n bigint", ordered_by="epoch", disorder=f"{_FACTOR} rows")
    app.query("q", _SQL, join_buffer=run.buffer)
    found: list[float] = []
    late = 0
    with LocalRun(app) as local:
        done, there = [0] * len(streams), 0
        for end in np.arange(MEAN_GAP, SECONDS + MEAN_GAP / 2, MEAN_GAP):
            _push(local, streams, done, float(end))
            local.drain()
            rows = local.log.read("q", there, local.log.end("q")).to_pylist() if local.log.end("q") > there else []
            there += len(rows)
            for row in rows:
                last = max(stream.times[row[name]] for stream, name in zip(streams, "nmk", strict=True))
                found.append(float(end - last))
                late += found[-1] > MEAN_GAP
    return LatencyOutcome(len(found), float(np.mean(found)), late / len(found))


def _push(local: LocalRun, streams: list[KeyedStream], done: list[int], end: float) -> None:
    for port, (name, stream) in enumerate(zip(_NAMES, streams, strict=True)):
        upto = int(np.searchsorted(stream.times, end))
        if upto > done[port]:
            keys = stream.keys[done[port] : upto].tolist()
            local.push(name, [{"epoch": key, "n": done[port] + at} for at, key in enumerate(keys)])
            done[port] = upto


def by_buffer(outcomes: list[LatencyOutcome], seeds: int) -> dict[JoinBuffer, list[LatencyOutcome]]:
    """Outcomes of all modes, seed by seed, sorted out."""
    found = defaultdict[JoinBuffer, list[LatencyOutcome]](list)
    for place, outcome in enumerate(outcomes):
        found[MODES[place // seeds]].append(outcome)
    return found
