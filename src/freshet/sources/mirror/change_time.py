"""When an element probably changed, if a poll only says that it did."""

from __future__ import annotations

import math


def estimated_change(before: float | None, polled: float, rate: float, modified: float | None = None) -> float:
    """The expected time of the last change between two polls.

    What the element says of itself counts, if it lies between the polls. Otherwise changes are a Poisson process, and
    looking back from the poll, the time to the last change is exponential, cut off at the poll before
    (CAR §2.2: changes are Poisson processes).

    Args:
        before: When the element was polled before; None: never.
        polled: When it was polled.
        rate: Changes a second.
        modified: When the element says that it changed.

    >>> estimated_change(0.0, 10.0, 1e-9), round(estimated_change(0.0, 10.0, 1.0), 2)
    (5.0, 9.0)
    >>> estimated_change(0.0, 10.0, 1.0, modified=2.5), estimated_change(None, 10.0, 1.0)
    (2.5, 10.0)
    """
    if modified is not None and modified <= polled and (before is None or modified >= before - 1.0):
        # Last-Modified has whole seconds, so it may lie a little before the poll that did not see the change.
        return modified if before is None else max(modified, before)
    if before is None or before >= polled:
        return polled
    span = polled - before
    changes = rate * span
    if changes < 1e-4:
        return polled - span / 2.0
    return polled - (1.0 / rate - span / math.expm1(min(changes, 700.0)))
