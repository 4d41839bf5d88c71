"""What is counted of the departures of a simulation of CAR §4.6: by application, by period, by thousands of tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.simulation.outcome import Departed, Floats
from freshet.simulation.workloads.aurora import AuroraWorkload

RECENT: Final = 1000
"""Number of output tuples over which CAR Fig. 4.19 takes the recent QoS."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Output tuples that were late or in time, for one kind of period and of application."""

    missed: int
    made: int


def applications_of(bed: AuroraWorkload, departed: Departed) -> tuple[tuple[float, float], ...]:
    """Share of late tuples and mean latency of each application."""
    found = []
    for query in bed.queries_of():
        arrivals, departures = departed[query.name]
        late = departures - arrivals > (query.promises.curve.promise if query.promises.curve is not None else np.inf)
        found.append((float(late.mean()), float((departures - arrivals).mean())) if len(late) else (0.0, 0.0))
    return tuple(found)


def late_in_calms(bed: AuroraWorkload, departed: Departed) -> tuple[float, ...]:
    """Share of late tuples of each application, of those that came in calms."""
    found = []
    for query in bed.queries_of():
        arrivals, departures = departed[query.name]
        late = departures - arrivals > (query.promises.curve.promise if query.promises.curve is not None else np.inf)
        calm = ~_in_storm(bed, arrivals)
        found.append(float(late[calm].mean()) if calm.any() else 0.0)
    return tuple(found)


def _in_storm(bed: AuroraWorkload, arrivals: Floats) -> NDArray[np.bool_]:
    """Which tuples came in a storm."""
    periods = bed.periods()
    begins = np.array([begin for begin, _, _ in periods])
    stormy = np.array([storm for _, _, storm in periods])
    return stormy[np.clip(np.searchsorted(begins, arrivals, side="right") - 1, 0, None)]


def recent_utilities(bed: AuroraWorkload, departed: Departed) -> tuple[tuple[float, float], ...]:
    """(arrival of the first, mean utility) of each :data:`RECENT` output tuples (CAR Fig. 4.19)."""
    parts = []
    for query in bed.queries_of():
        arrivals, departures = departed[query.name]
        promise = query.promises.curve.promise if query.promises.curve is not None else np.inf
        parts.append(np.stack([departures, arrivals, departures - arrivals <= promise]))
    left, came, kept = np.concatenate(parts, axis=1)
    order = np.argsort(left, kind="stable")
    came, kept = came[order], kept[order]
    windows = range(0, len(order) - RECENT + 1, RECENT)
    return tuple((float(came[first]), float(kept[first : first + RECENT].mean())) for first in windows)


def counts_of(bed: AuroraWorkload, departed: Departed) -> tuple[tuple[tuple[bool, bool], Counts], ...]:
    """Late tuples and others by (storm or calm, tight or loose)."""
    sums = {(storm, tight): [0, 0] for storm in (False, True) for tight in (False, True)}
    for number, query in enumerate(bed.queries_of()):
        arrivals, departures = departed[query.name]
        promise = query.promises.curve.promise if query.promises.curve is not None else np.inf
        late = departures - arrivals > promise
        in_storm = _in_storm(bed, arrivals)
        tight = number % len(bed.deadlines) == 0
        for storm in (False, True):
            here = in_storm == storm
            sums[storm, tight][0] += int(np.count_nonzero(late & here))
            sums[storm, tight][1] += int(np.count_nonzero(~late & here))
    return tuple((key, Counts(*each)) for key, each in sums.items())
