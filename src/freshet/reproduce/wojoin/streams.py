"""Streams with a scrambling factor, a multiplicity and bursts (WU §3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MEAN_GAP = 0.02
"""Seconds between two rows of a stream, on average."""
Burst = tuple[float, float, float]
"""From, until (seconds), and the factor of the rate."""


@dataclass(frozen=True, slots=True)
class KeyedStream:
    """A stream as it comes: the key of each row, and when it comes."""

    keys: NDArray[np.int64]
    times: NDArray[np.float64]


def keyed_stream(
    random: np.random.Generator, seconds: float, factor: int, multiplicity: int = 2, bursts: Sequence[Burst] = ()
) -> KeyedStream:
    """Draws a stream: a Poisson process; each key comes ``multiplicity`` times, and rows overtake each other by fewer
    than ``factor`` places.

    >>> stream = keyed_stream(np.random.default_rng(0), 10.0, 30)
    >>> from freshet.quality.disorder import multiplicity, scrambling_factor
    >>> 10 < scrambling_factor(stream.keys) <= 31, multiplicity(stream.keys)
    (True, 2)
    """
    times = _times(random, seconds, bursts)
    rows = len(times) + factor
    # Rows further ahead than the last that comes may overtake it.
    order = np.argsort(np.arange(rows) + random.random(rows) * max(factor - multiplicity, 0), kind="stable")
    return KeyedStream((order[: len(times)] // multiplicity).astype(np.int64), times)


def _times(random: np.random.Generator, seconds: float, bursts: Sequence[Burst]) -> NDArray[np.float64]:
    edges = sorted({0.0, seconds, *(edge for begin, end, _ in bursts for edge in (begin, end) if edge < seconds)})
    parts = []
    for begin, end in pairwise(edges):
        rate = np.prod([times for first, last, times in bursts if first <= begin < last]) / MEAN_GAP
        parts.append(np.sort(random.uniform(begin, end, random.poisson(rate * (end - begin)))))
    return np.concatenate(parts)
