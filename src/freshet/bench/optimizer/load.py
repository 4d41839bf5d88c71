"""The workload of ``freshet bench optimizer``: one query of eight operators over three streams, in four phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.arrivals import RateSchedule
from freshet.bench.freshness.queries import chain
from freshet.bench.rig.feed import Arrival
from freshet.model import Expectations

QUERY: Final = "q"
SCHEMA: Final = "id bigint, v double, w double, note string"
SHARES: Final = {"s0": 20 / 60, "s1": 18 / 60, "s2": 22 / 60}
"""Share of each stream in all rows: as 2000, 1800 and 2200 (MAV §5)."""
WINDOW_S: Final = 2
SQL: Final = f"""
SELECT P.id, {chain("P.x", "T.v", 128, 7.03)} AS x
FROM (SELECT A.id, A.v AS x, B.v AS y
      FROM s0 [RANGE {WINDOW_S} SECONDS] A, s1 [RANGE {WINDOW_S} SECONDS] B
      WHERE A.id = B.id AND {chain("A.v", "A.w", 4, 3.01)} < 0.5 AND {chain("B.v", "B.w", 8, 5.02)} < 0.5) P,
     s2 [RANGE {WINDOW_S} SECONDS] T
WHERE P.id = T.id AND {chain("T.v", "T.w", 4, 4.01)} < 0.5 AND {chain("P.x", "P.y", 256, 6.01)} < 0.8
  AND {chain("P.x", "T.v", 128, 8.04)} < 0.9
"""
"""Three cheap selections, two joins, an expensive selection between them and one behind them, and a projection. In
front of each join, tuples lose the columns that nobody needs."""
NOTE_BYTES: Final = 100
"""Bytes of the column that no operator reads: a tuple is wide until it has passed the first selection."""
CHUNKS: Final = 20.0
"""At a load of 1, rows come on each stream so many times per second, as a Poisson process."""
LOOK_S: Final = 1.0
"""Seconds between looks."""
OVERLOAD: Final = "overload"
RELAXED: Final = 10.0
"""From the phase with little memory on, answers may take so many times as long."""
_SLOTLESS: Final = -1


class LoadPhase(NamedTuple):
    """A part of a run: its name, and pieces of (seconds, load)."""

    name: str
    pieces: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return sum(seconds for seconds, _ in self.pieces)


def phases(seconds: float) -> tuple[LoadPhase, ...]:
    """The phases of a run; each lasts so many seconds.

    >>> [(phase.name, phase.seconds) for phase in phases(10.0)]
    [('calm', 10.0), ('burst', 10.0), ('tight', 10.0), ('overload', 10.0)]
    """
    burst = ((0.2 * seconds, 0.6), (0.3 * seconds, 1.5), (0.5 * seconds, 0.6))
    return (
        LoadPhase("calm", ((seconds, 0.6),)),
        LoadPhase("burst", burst),
        LoadPhase("tight", burst),
        LoadPhase(OVERLOAD, ((seconds, 1.5),)),
    )


@dataclass(frozen=True, slots=True)
class LoadWishes:
    """What is expected: seconds in the phases calm and burst, and bytes from the third phase on."""

    latency: float
    memory: float

    def expectations(self, phase_s: float, lead: float = 0.0) -> Expectations:
        """Both are of the class must. In the first two phases a low latency is expected, and hardly anything of
        memory; from the third on it is the other way around.

        Args:
            phase_s: Seconds of a phase.
            lead: The query's age when the first phase begins.

        >>> wishes = LoadWishes(0.5, 1e6).expectations(10.0)
        >>> [[each.at(age) for each in wishes] for age in (5.0, 25.0)]
        [[0.5, 100000000.0], [5.0, 1000000.0]]
        """
        change = lead + 2.0 * phase_s

        def step(before: float, after: float) -> dict[str, Any]:
            return {"class": "must", "points": [(0.0, before), (change, before), (change, after)]}

        latency, memory = step(self.latency, RELAXED * self.latency), step(100.0 * self.memory, self.memory)
        return Expectations.parse({"every": LOOK_S, "latency": latency, "memory": memory})


ANYTHING: Final = LoadWishes(3600.0, 1e12)
"""Expectations that are always met: the query is only watched."""


def make_rows(count: int, slot: int, spread: int, draw: np.random.Generator) -> pa.Table:
    """Rows with an id below ``spread`` in their slot, so that rows join only if they are of one slot.

    >>> make_rows(2, 0, 5, np.random.default_rng(0)).column_names
    ['id', 'v', 'w', 'note']
    """
    return pa.table(
        {
            "id": slot * (1 << 32) + draw.integers(0, spread, count),
            "v": draw.random(count),
            "w": draw.random(count),
            "note": pa.array(["n" * NOTE_BYTES]).take(pa.array(np.zeros(count, np.int64))),
        }
    )


def backlog(rows: int, seed: int) -> dict[str, pa.Table]:
    """So many rows of all streams together, to be worked off."""
    draw = np.random.default_rng([seed, 55])
    counts = {name: max(1, round(share * rows)) for name, share in SHARES.items()}
    spread = max(1, rows // len(SHARES))
    return {name: make_rows(count, _SLOTLESS - seed, spread, draw) for name, count in counts.items()}


def arrivals(played: Sequence[LoadPhase], capacity: float, seed: int) -> list[Arrival]:
    """What comes when in these phases, if the machine can do ``capacity`` rows per second.

    Rows meet a partner as often at any load: there are as many ids in a slot as rows are expected there.
    """
    pieces = [piece for phase in played for piece in phase.pieces]
    found = []
    for number, (stream, share) in enumerate(SHARES.items()):
        draw = np.random.default_rng([seed, 56, number])
        schedule = [(seconds, CHUNKS * load) for seconds, load in pieces]
        times = RateSchedule(schedule, repeat=False, seed=3 * seed + number).cursor().take_until(np.inf)
        rows = max(1, round(share * capacity / CHUNKS))
        for time in times.tolist():
            slot = int(time // WINDOW_S)
            spread = max(1, round(capacity * WINDOW_S * load_at(pieces, slot * WINDOW_S) / len(SHARES)))
            found.append((time, {stream: make_rows(rows, slot, spread, draw)}))
    return sorted(found, key=lambda each: each[0])


def load_at(pieces: Sequence[tuple[float, float]], time: float) -> float:
    """The load of the piece in which a moment lies; of the last one if it is later.

    >>> [load_at(((1.0, 0.5), (2.0, 1.5)), time) for time in (0.5, 1.0, 9.0)]
    [0.5, 1.5, 1.5]
    """
    for seconds, load in pieces:
        if time < seconds:
            return load
        time -= seconds
    return pieces[-1][1]


def phase_at(played: Sequence[LoadPhase], time: float) -> str | None:
    """The phase in which a moment lies; None: before the first or after the last.

    >>> [phase_at(phases(10.0), time) for time in (-1.0, 5.0, 10.0, 99.0)]
    [None, 'calm', 'burst', None]
    """
    for phase, begin, end in _spans(played):
        if begin <= time < end:
            return phase.name
    return None


def _spans(played: Sequence[LoadPhase]) -> Iterator[tuple[LoadPhase, float, float]]:
    begin = 0.0
    for phase in played:
        yield phase, begin, begin + phase.seconds
        begin += phase.seconds
