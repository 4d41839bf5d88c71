"""Fresh seconds at each of several times, as far as they are known at the end."""

from __future__ import annotations

from collections.abc import Sequence


def settled(times: Sequence[float], fresh: Sequence[float]) -> list[float]:
    """Fresh seconds of an output at each time, corrected by the later ones.

    Whether an output is stale is known for certain only when what waits has been answered; until then the meters use
    its probability. So this goes back from the end: between two times the fresh seconds can neither fall nor grow by
    more than the time between them.

    >>> settled([0.0, 1.0, 2.0], [0.0, 1.0, 0.5])
    [0.0, 0.5, 0.5]
    """
    found = list(fresh)
    for number in range(len(found) - 2, -1, -1):
        most, passed = found[number + 1], times[number + 1] - times[number]
        found[number] = min(most, max(most - passed, found[number]))
    return found
