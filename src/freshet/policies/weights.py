"""Weights of queries from what is known of their users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from freshet.model import UserError

LEAST: Final = 1e-6
"""Weight of a query that nobody reads: it is served last, but served."""


def weights_from_subscribers(subscribers: Mapping[str, int]) -> dict[str, float]:
    """Weights in (0, 1] by popularity: the number of users of a query over that of the most popular one (FAS §4.4).

    >>> weights_from_subscribers({"outbreak": 40, "traffic": 10, "unread": 0})
    {'outbreak': 1.0, 'traffic': 0.25, 'unread': 1e-06}

    Raises:
        UserError: A number of users is negative or not a whole number.
    """
    for query, count in subscribers.items():
        if count < 0 or count % 1:
            raise UserError(f"query {query}: the number of subscribers must be a whole number from 0 up, not {count!r}")
    most = max(subscribers.values(), default=0)
    if most <= 0:
        return dict.fromkeys(subscribers, 1.0)
    return {query: max(LEAST, count / most) for query, count in subscribers.items()}
