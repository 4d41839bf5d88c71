"""A mirror in simulated time, event by event: changes, polls and accesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import Elements
from freshet.mirror.measures import weighted_mean
from freshet.mirror.orders import OrderName

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WatchedMirror:
    """What a watched mirror showed.

    Args:
        perceived: Time-averaged freshness, weighted by worth.
        accesses: Share of simulated accesses that saw a fresh element.
        general: Time-averaged freshness of all elements alike.
        age: Time-averaged age of polled elements, weighted by worth.
    """

    perceived: float
    accesses: float
    general: float
    age: float


def watch(
    elements: Elements,
    frequencies: Floats,
    *,
    periods: float,
    order: OrderName = "fixed",
    accesses: int = 10_000,
    seed: int = 1,
) -> WatchedMirror:
    """Polls a mirror whose elements change by Poisson processes, and looks at it all the time (CAR §2.4, Fig. 2.4).

    Args:
        elements: True change rates, worth; sizes do not matter.
        frequencies: Polls per period of each element.
        periods: Periods to simulate.
        order: How the polls of an element lie in time.
        accesses: Number of accesses, drawn by worth.
        seed: Seed of all draws.

    >>> seen = watch(Elements.of([1.0]), np.array([1.0]), periods=20_000)
    >>> abs(seen.perceived - 0.632) < 0.01, abs(seen.accesses - 0.632) < 0.02
    (True, True)
    """
    rng = np.random.default_rng(seed)
    asked = rng.multinomial(accesses, elements.worth / elements.worth.sum())
    fresh, ages, hits = np.zeros(len(elements)), np.zeros(len(elements)), 0
    for row, (rate, frequency) in enumerate(zip(elements.rates, frequencies, strict=True)):
        polls = poll_times(float(frequency), periods, order, rng)
        stale_from = polls + (rng.exponential(1.0 / rate, len(polls)) if rate > 0.0 else np.inf)
        fresh[row], ages[row] = _averages(polls, stale_from, periods)
        when = rng.uniform(0.0, periods, asked[row])
        hits += int(np.count_nonzero(when < stale_from[np.searchsorted(polls, when, side="right") - 1]))
    polled = frequencies > 0.0
    return WatchedMirror(
        weighted_mean(fresh, elements.worth),
        hits / accesses,
        float(fresh.mean()),
        weighted_mean(ages[polled], elements.worth[polled]),
    )


def poll_times(frequency: float, periods: float, order: OrderName, rng: np.random.Generator) -> Floats:
    """Times of the polls of one element; the first is before the beginning, so that the state there is a steady one.

    >>> poll_times(2.0, 1.0, "fixed", np.random.default_rng(1)).round(2)
    array([-0.24,  0.26,  0.76])
    """
    if frequency == 0.0:
        return np.array([-np.inf])
    gap = 1.0 / frequency
    if order == "poisson":
        gaps = rng.exponential(gap, int(periods * frequency + 10 * np.sqrt(periods * frequency) + 20))
        times = np.cumsum(gaps) - gaps[0] - rng.exponential(gap)
    else:
        times = (np.arange(-2.0, periods * frequency + 1.0) + rng.random()) * gap
        if order == "random":
            times += gap * rng.random(len(times))
    first = max(int(np.searchsorted(times, 0.0, side="right")) - 1, 0)
    return np.asarray(times[first : int(np.searchsorted(times, periods))])


def _averages(polls: Floats, stale_from: Floats, periods: float) -> tuple[float, float]:
    """Freshness and age of one element, averaged over the periods."""
    if not np.isfinite(polls[0]):
        forever = bool(np.isposinf(stale_from[0]))
        return (1.0, 0.0) if forever else (0.0, np.inf)
    ends = np.append(polls[1:], periods)
    begins = np.maximum(polls, 0.0)
    change = np.minimum(stale_from, ends)
    fresh = np.maximum(change - begins, 0.0)
    from_, stale = np.maximum(change, begins), ends - np.maximum(change, begins)
    before = np.where(np.isfinite(stale_from), from_ - stale_from, 0.0) * (stale > 0.0)
    return float(fresh.sum() / periods), float((stale * (before + 0.5 * stale)).sum() / periods)
