"""The workload of RT §5.2.1, Table 2: 24 periodic queries over eight Poisson streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from freshet.arrivals import RateSchedule
from freshet.model import Promises
from freshet.model.promises.promise import Late
from freshet.model.promises.quality_table import QualityTable
from freshet.simulation.executor import Profile
from freshet.simulation.outcome import Floats
from freshet.simulation.world import SimulatedQuery

STREAMS: Final = tuple(f"s{number}" for number in range(8))
RATE: Final = 1000.0
"""Tuples per second of each stream at a load of 100 %."""
TABLES: Final = ("tolerant",) * 10 + ("proportional",) * 10 + ("strict",) * 4
"""The quality tables that are dealt to the queries."""
DEADLINE: Final = 1.0
WINDOWS: Final = {"pairs": 4.0, "known": 2.0, "types": 1.0}
"""Seconds of the window of each of the three queries of a stream."""
LISTED: Final = {"pairs": 2.0, "known": 2.0, "types": 1.0}
"""Their periods, as RT §5.2.1 lists them."""
STREAM_JOIN: Final = Profile(5e-6, 1e-4, out_cost=0.2e-6, pairs=True)
TABLE_JOIN: Final = Profile(5e-6, 0.2)
AGGREGATE: Final = Profile(0.4e-6, 0.0025)
GROUPS: Final = Profile(0.4e-6, 0.01)
"""Costs within the ranges of RT Table 1, before they are scaled: at these, 1000 tuples/s are far from saturation."""
BOXES: Final = {
    "pairs": {"join": STREAM_JOIN},
    "known": {"join": TABLE_JOIN, "sum": AGGREGATE},
    "types": {"count": GROUPS},
}
SATURATED: Final = 0.97
"""Seconds of work that are due within a second at a load of 100 %. The numbers of Poisson arrivals vary, so a little is
left free: best effort just misses nothing there."""

ReleaseTimes = Literal["listed", "each second"]
"""When queries are released. ``listed``: at multiples of the listed periods, so that most of the work of two seconds is
due in the first of them. ``each second``: all periods are 1 s, so that the load lasts (RT Table 2 has periods of
1 to 4 s)."""


@dataclass(frozen=True, slots=True)
class RtWorkload:
    """The queries and streams of RT Table 2.

    Each stream has three queries: pairs of its tuples with those of the next stream, statistics of its tuples that a
    table knows, and its tuples by type.

    Args:
        load: Work that is due by a deadline over the time until then, at common releases; 1 is saturation.
        seconds: How long tuples come.
        releases: When queries are released.
        swing: Seconds in which the rate goes up and down once, by a sixth of its mean (RT Fig. 10c); 0: it is steady.
        late: Whether late instances finish or are abandoned.
        seed: Of arrivals and of the quality tables that queries are dealt.

    >>> bed = RtWorkload(seconds=4.0)
    >>> len(bed.queries_of()), sorted(bed.streams_of())[:2]
    (24, ['s0', 's1'])
    >>> round(bed.due(1.0), 3)
    0.97
    """

    load: float = 1.0
    seconds: float = 300.0
    releases: ReleaseTimes = "listed"
    swing: float = 0.0
    late: Late = "finish"
    seed: int = 0

    def streams_of(self) -> dict[str, Floats]:
        """Arrival times by stream."""
        rate = RATE * self.load
        high, half = rate * 7.0 / 6.0, self.swing / 2.0
        pieces = [(half, high), (half, 2.0 * rate - high)] if self.swing else [(self.seconds, rate)]
        return {
            name: RateSchedule(pieces, repeat=True, seed=8 * self.seed + number).cursor().take_until(self.seconds)
            for number, name in enumerate(STREAMS)
        }

    @property
    def scale(self) -> float:
        """What all costs are multiplied by, so that a load of 1 saturates."""
        return SATURATED / self._unscaled(1.0)

    def due(self, load: float) -> float:
        """Seconds of work that are due a second after a common release."""
        return self.scale * self._unscaled(load)

    def _unscaled(self, load: float) -> float:
        rows = {name: RATE * load * seconds for name, seconds in WINDOWS.items()}
        matches = rows["pairs"] ** 2 * STREAM_JOIN.selectivity
        pairs = 2.0 * rows["pairs"] * STREAM_JOIN.cost + matches * STREAM_JOIN.out_cost
        known = rows["known"] * (TABLE_JOIN.cost + TABLE_JOIN.selectivity * AGGREGATE.cost)
        return len(STREAMS) * (pairs + known + rows["types"] * GROUPS.cost)

    def queries_of(self) -> list[SimulatedQuery]:
        """The queries, with tables dealt by the seed."""
        dealt = np.random.default_rng([17, self.seed]).permutation(TABLES)
        kinds = [(kind, number) for number in range(len(STREAMS)) for kind in WINDOWS]
        return [self._query(kind, number, str(table)) for (kind, number), table in zip(kinds, dealt, strict=True)]

    def _query(self, kind: str, number: int, table: str) -> SimulatedQuery:
        stream, after = STREAMS[number], STREAMS[(number + 1) % len(STREAMS)]
        name = f"{kind}_{stream}"
        streams = (stream, after) if kind == "pairs" else (stream,)
        profiles = {f"{name}.{box}": scaled(profile, self.scale) for box, profile in BOXES[kind].items()}
        names = list(profiles)
        inputs = {names[0]: streams} | {box: (before,) for before, box in pairwise(names)}
        promises = Promises(
            period=LISTED[kind] if self.releases == "listed" else DEADLINE,
            deadline=DEADLINE,
            overload=("defer", "thin"),
            quality=QualityTable.parse(table),
            late=self.late,
        )
        return SimulatedQuery(name, profiles, inputs, promises, dict.fromkeys(streams, WINDOWS[kind]))


def scaled(profile: Profile, factor: float) -> Profile:
    """A profile of the same operator on a slower machine.

    >>> scaled(Profile(2e-6, out_cost=1e-6), 3.0).out_cost
    3e-06
    """
    return replace(profile, cost=profile.cost * factor, out_cost=profile.out_cost * factor)
