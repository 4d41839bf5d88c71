"""Rows that come when they are due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

Chunk = Mapping[str, pa.Table]
"""Rows by stream."""
Arrival = tuple[float, Chunk]
"""Seconds after the start, and what comes then."""


def feed(arrivals: Iterable[Arrival], start: float, take: Callable[[Chunk, float], None]) -> list[float]:
    """Brings rows in, each when it is due.

    Args:
        arrivals: What comes, in order.
        start: When it begins, in seconds since the epoch.
        take: Gets rows and the time at which they were due; returns when they are stored.

    Returns:
        By arrival, the seconds from when it was due to when it was stored.

    >>> came = []
    >>> lags = feed([(0.0, {}), (0.01, {})], time.time(), lambda chunk, due: came.append(time.time() >= due))
    >>> len(lags), came
    (2, [True, True])
    """
    lags = []
    for after, chunk in arrivals:
        due = start + after
        time.sleep(max(0.0, due - time.time()))
        take(chunk, due)
        lags.append(time.time() - due)
    return lags
