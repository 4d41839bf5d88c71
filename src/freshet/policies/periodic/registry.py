"""Schedulers of periodic queries by name, as users write them: ``edf``, ``edf-fused(shortest)``."""

from __future__ import annotations

import re
from typing import Final

from freshet.model import UserError
from freshet.policies.periodic.deadline_monotonic import DeadlineMonotonic
from freshet.policies.periodic.earliest_deadline import EarliestDeadline
from freshet.policies.periodic.fused_deadlines import FusedDeadlines
from freshet.policies.periodic.least_laxity import LeastLaxity
from freshet.policies.periodic.rate_monotonic import RateMonotonic
from freshet.policies.periodic.scheduler import PeriodicScheduler

PERIODIC: Final[dict[str, type[PeriodicScheduler]]] = {
    each.name: each for each in (EarliestDeadline, FusedDeadlines, RateMonotonic, DeadlineMonotonic, LeastLaxity)
}
"""The class of each scheduler by its name."""
_CALL: Final = re.compile(r"\s*([a-z-]+)\s*(?:\(\s*([^()]*?)\s*\))?\s*")


def periodic_names() -> tuple[str, ...]:
    """The names of all schedulers.

    >>> periodic_names()
    ('edf', 'edf-fused', 'rm', 'dm', 'llf')
    """
    return tuple(PERIODIC)


def check_periodic(text: str, reserve: object) -> None:
    """Refuses what names no scheduler, and what is no share.

    >>> check_periodic("edf", 1.5)
    Traceback (most recent call last):
    freshet.model.errors.UserError: reserve must be at least 0 and below 1, not 1.5
    """
    create_periodic(text)
    if isinstance(reserve, bool) or not isinstance(reserve, int | float) or not 0.0 <= reserve < 1.0:
        raise UserError(f"reserve must be at least 0 and below 1, not {reserve!r}")


def create_periodic(text: str) -> PeriodicScheduler:
    """The scheduler that a text names.

    >>> create_periodic("llf").ties, create_periodic("edf(shortest)").ties
    ('hash', 'shortest')
    >>> create_periodic("fifo")
    Traceback (most recent call last):
    freshet.model.errors.UserError: there is no periodic scheduler 'fifo' (there are: edf, edf-fused, rm, dm, llf)
    """
    match = _CALL.fullmatch(text)
    make = PERIODIC.get(match.group(1)) if match else None
    if match is None or make is None:
        raise UserError(f"there is no periodic scheduler {text!r} (there are: {', '.join(PERIODIC)})")
    return make(match.group(2) or "hash")
