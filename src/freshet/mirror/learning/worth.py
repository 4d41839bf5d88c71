"""What elements are worth: given, by the queries that read them, or by a log of accesses (CAR §2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.elements import check_column
from freshet.model import UserError

Floats = NDArray[np.float64]


def from_users(profiles: Mapping[str, Sequence[float] | Floats], weights: Mapping[str, float]) -> Floats:
    """The master profile: each user's interest, scaled to sum 1, times the weight of the user.

    Args:
        profiles: Worth of each element to each user, by the name of the user.
        weights: Weight of each user; 1 for those who are not named.

    >>> from_users({"ann": [1, 1], "bob": [9, 1]}, {"bob": 2.0}).round(2)
    array([0.77, 0.23])
    """
    if not profiles:
        raise UserError("a master profile needs at least one user")
    parts = []
    for user, profile in profiles.items():
        column = np.asarray(profile, dtype=np.float64)
        check_column(column, f"worth to {user}", zero=True)
        parts.append(weights.get(user, 1.0) * column / max(float(column.sum()), 1e-300))
    total = np.sum(parts, axis=0)
    return np.asarray(total / max(float(total.sum()), 1e-300))


def from_readers(count: int, readers: Iterable[tuple[float, Sequence[int] | None]]) -> Floats:
    """Worth by the queries that read a mirror: the sum of their weights.

    Args:
        count: Number of elements.
        readers: Weight of each query, and the elements that it reads; None for all.

    >>> from_readers(3, [(1.0, None), (2.0, [0, 2])])
    array([3., 1., 3.])
    """
    worth = np.zeros(count)
    for weight, elements in readers:
        worth[slice(None) if elements is None else list(elements)] += weight
    return worth


def from_accesses(count: int, accesses: Iterable[int], *, unseen: float = 0.5) -> Floats:
    """Worth by a log of accesses: p = M_i / M (CAR §2.2.1).

    Args:
        count: Number of elements.
        accesses: The element of each access.
        unseen: Accesses that each element is given beforehand, so that what was not read so far is not worthless.

    >>> from_accesses(2, [0, 0, 1], unseen=0.0).round(2)
    array([0.67, 0.33])
    """
    seen = np.bincount(np.fromiter(accesses, dtype=np.intp), minlength=count).astype(np.float64)
    if len(seen) > count:
        raise UserError(f"the log names element {len(seen) - 1}, and there are {count}")
    seen += unseen
    return seen / max(float(seen.sum()), 1e-300)
