"""The workload of ``freshet bench optimizer``: one query of eight operators over three streams, in four phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.bench.freshness.queries import chain
from freshet.bench.rig.feed import Arrival
from freshet.model import Expectations

QUERY: Final = "q"
SCHEMA: Final = "id bigint, v double, w double, note string"
SHARES: Final = {"s0": 20 / 60, "s1": 18 / 60, "s2": 22 / 60}
"""Share of each stream in all rows: as 2000, 1800 and 2200 (MAV §5)."""
LATER: Final = "s2"
"""Rows of this stream come after those that they belong to, as payments come after orders. So most answers come from
its path, which is the cheapest."""
WINDOW_S: Final = 2
_LONGEST: Final = 256
"""Maximum number of links in one chain: a sum of more would be nested too deeply."""


def arithmetic(column: str, other: str, links: int, factor: float) -> str:
    """A chain of any length, as a sum of chains.

    >>> arithmetic("v", "w", 1, 3.01), arithmetic("v", "w", 512, 3.01).count("%")
    ('(v * 3.01 + w) % 1.0', 515)
    """
    pieces = [
        chain(column, other, min(_LONGEST, links - first), factor + first * 1e-3) for first in range(0, links, _LONGEST)
    ]
    return pieces[0] if len(pieces) == 1 else f"({' + '.join(pieces)}) % 1.0"


def first(table: str) -> str:
    """The selection of the stream s0; others likewise."""
    return f"{arithmetic(f'{table}.v', f'{table}.w', 160, 3.01)} < 0.5"


def second(table: str) -> str:
    """The selection of s1."""
    return f"{arithmetic(f'{table}.v', f'{table}.w', 160, 5.02)} < 0.5"


def third(table: str) -> str:
    """The selection of s2."""
    return f"{arithmetic(f'{table}.v', f'{table}.w', 112, 4.01)} < 0.5"


def fitting(x: str, y: str) -> str:
    """The expensive selection between the joins."""
    return f"{arithmetic(x, y, 1088, 6.01)} < 0.8"


def large(x: str, y: str) -> str:
    """The selection behind the joins."""
    return f"{arithmetic(x, y, 64, 8.04)} < 0.9"


def shown(x: str, y: str) -> str:
    """What is shown."""
    return arithmetic(x, y, 64, 7.03)


SQL: Final = f"""
SELECT P.id, {shown("P.x", "T.v")} AS x
FROM (SELECT A.id, A.v AS x, B.v AS y
      FROM s0 [RANGE {WINDOW_S} SECONDS] A, s1 [RANGE {WINDOW_S} SECONDS] B
      WHERE A.id = B.id AND {first("A")} AND {second("B")}) P,
     s2 [RANGE {WINDOW_S} SECONDS] T
WHERE P.id = T.id AND {third("T")} AND {fitting("P.x", "P.y")} AND {large("P.x", "T.v")}
"""
"""Three selections, two joins, an expensive selection between them and one behind them, and a projection. In front of
each join, tuples lose the columns that nobody needs. All of it is expensive, so that a full train takes about ten times
as long as the overhead of a step; with cheaper operators, strategies that need more steps are only slower. The first
selections take about half of the work, so they can keep up with the overload."""
NOTE_BYTES: Final = 100
"""Bytes of the column that no operator reads: a tuple is wide until it has passed the first selection."""
BEAT: Final = 0.1
"""Seconds from one batch to the next, but for the calm; each brings rows of all streams, somewhere in the first half of
its beat."""
PARTNERS: Final = 2.0
"""Rows of a stream for each id of a slot."""
SLOT_S: Final = 1
"""Rows of the first two streams meet within such a slot; those of the third belong to rows of the slot before."""
LOOK_S: Final = 0.25
"""Seconds between looks. What is left out makes up for the load of the future alone: what has piled up before a look
notices stays for long."""
OVERLOAD: Final = "overload"
RELAXED: Final = 1000.0
"""Factor by which answers may take longer from the phase with little memory on: only memory counts then."""
ROOM: Final = 1.3
"""The memory expected then, as a multiple of the most that Segment had in a burst."""
CALM, LOW, BURST, FLOOD = 0.3, 0.3, 1.7, 1.5
"""Loads: of the calm, between bursts, of a burst and of the overload."""
CALM_PHASE: Final = "calm"
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
    """The phases of a run of about this many seconds: a calm, a burst, as many bursts as fit, an overload.

    >>> [(phase.name, phase.seconds) for phase in phases(57.0)]
    [('calm', 14.0), ('burst', 2.5), ('tight', 20.0), ('overload', 20.0)]
    """
    unit = seconds / 57.0
    burst = ((0.5, LOW), (1.0, BURST), (1.0, LOW))
    return (
        LoadPhase(CALM_PHASE, ((14.0 * unit, CALM),)),
        LoadPhase("burst", burst),
        LoadPhase("tight", max(1, round(8 * unit)) * burst),
        LoadPhase(OVERLOAD, ((20.0 * unit, FLOOD),)),
    )


@dataclass(frozen=True, slots=True)
class LoadWishes:
    """What is expected: seconds in the phases calm and burst, and bytes from the third phase on."""

    latency: float
    memory: float

    def expectations(self, change: float) -> Expectations:
        """Both are of the class must. Before the change a low latency is expected, and hardly anything of memory; after
        it, it is the other way around.

        Args:
            change: The query's age then, in seconds.

        >>> wishes = LoadWishes(0.5, 1e6).expectations(20.0)
        >>> [[each.at(age) for each in wishes] for age in (5.0, 25.0)]
        [[0.5, 100000000.0], [500.0, 1000000.0]]
        """

        def step(before: float, after: float) -> dict[str, Any]:
            return {"class": "must", "points": [(0.0, before), (change, before), (change, after)]}

        latency, memory = step(self.latency, RELAXED * self.latency), step(100.0 * self.memory, self.memory)
        return Expectations.parse({"every": LOOK_S, "latency": latency, "memory": memory})


ANYTHING: Final = LoadWishes(3600.0, 1e12)
"""Expectations that are always met: the query is only watched."""


def make_rows(count: int, slot: int, spread: int, draw: np.random.Generator) -> pa.Table:
    """Rows with an id below ``spread`` in a slot, so that rows join only if they are of one slot.

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
    spread = max(1, round(rows / len(SHARES) / PARTNERS))
    return {name: make_rows(count, _SLOTLESS - seed, spread, draw) for name, count in counts.items()}


def calm_rows(capacity: float) -> int:
    """Mean number of rows of a batch of the calm."""
    return round(CALM * BEAT * capacity)


def calm_beat(seconds_per_batch: float) -> float:
    """Seconds from one batch of the calm to the next.

    A batch of the calm is small. A call of an expression has a price, whatever the number of tuples, and for small
    batches this is most of their time. So a batch each :data:`BEAT` is more load than its rows, which are reckoned by
    what long trains take. The calm has its load if its batches come as often as the machine can do :data:`CALM` of.

    Args:
        seconds_per_batch: What such a batch was measured to take, alone.

    >>> round(calm_beat(0.09), 6)
    0.3
    """
    return max(BEAT, seconds_per_batch / CALM)


def arrivals(played: Sequence[LoadPhase], capacity: float, seed: int, calm: float = BEAT) -> list[Arrival]:
    """What comes when in these phases, if the machine can do ``capacity`` rows per second in long trains.

    A batch has a number of rows of each stream that is drawn from a Poisson distribution. Rows meet a partner as often
    at any load: the number of ids in a slot goes with the rows that are expected there.

    Args:
        played: The phases.
        capacity: Rows per second that are a load of 1.
        seed: Seed of all draws.
        calm: Seconds from one batch of the calm to the next, of :func:`calm_rows` each.
    """
    rates = _rates(played, capacity, calm)
    draw = np.random.default_rng([seed, 56])
    found: list[Arrival] = []
    for begin, beat in _beats(played, calm):
        rows = total_between(rates, begin, begin + beat)
        slot = int((begin + 1e-9) // SLOT_S)
        chunk = {}
        for stream, share in SHARES.items():
            own = slot - 1 if stream == LATER else slot
            expected = total_between(rates, max(0, own) * SLOT_S, (max(0, own) + 1) * SLOT_S) / len(SHARES)
            spread = max(1, round(expected / PARTNERS))
            chunk[stream] = make_rows(max(1, int(draw.poisson(share * rows))), own, spread, draw)
        found.append((begin + draw.random() * beat / 2.0, chunk))
    return found


def _rates(played: Sequence[LoadPhase], capacity: float, calm: float) -> list[tuple[float, float]]:
    """Pieces of (seconds, rows per second)."""
    return [
        (seconds, capacity * load * (BEAT / calm if phase.name == CALM_PHASE else 1.0))
        for phase in played
        for seconds, load in phase.pieces
    ]


def _beats(played: Sequence[LoadPhase], calm: float) -> Iterator[tuple[float, float]]:
    """When each batch may come at first, and the seconds until the next one may."""
    for phase, start, end in _spans(played):
        count = max(1, round(phase.seconds / (calm if phase.name == CALM_PHASE else BEAT)))
        beat = (end - start) / count
        yield from ((start + number * beat, beat) for number in range(count))


def total_between(rates: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """What comes between two moments, by pieces of (seconds, rate).

    >>> [total_between(((1.0, 0.5), (2.0, 1.5)), *span) for span in ((0.0, 1.0), (0.5, 2.0), (2.0, 9.0))]
    [0.5, 1.75, 1.5]
    """
    found, start = 0.0, 0.0
    for seconds, rate in rates:
        found += rate * max(0.0, min(end, start + seconds) - max(begin, start))
        start += seconds
    return found


def phase_at(played: Sequence[LoadPhase], time: float) -> str | None:
    """The phase in which a moment lies; None: before the first or after the last.

    >>> [phase_at(phases(44.0), time) for time in (-1.0, 5.0, 12.0, 99.0)]
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
