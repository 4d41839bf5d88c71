"""Deadlines: whether the instances of periodic queries can be answered in time (RT §4.3; CAR §4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from freshet.model import duration_text
from freshet.quality.feasibility.situation import QueryDemand, Situation
from freshet.quality.feasibility.verdict import Feasible, Verdict
from freshet.quality.periodic.feasible import Fit, PeriodicLoad, fit

_BARELY: Final = 1.1
_MOST: Final = 64.0
"""Rooms beyond it are not told apart."""


def deadlines(situation: Situation) -> Iterator[Verdict]:
    """A verdict for each query with a PERIOD: whether what is due by its deadlines fits, of all queries, with the
    overhead of their steps.

    >>> from freshet.model import Promises
    >>> def query(name: str, seconds: float) -> QueryDemand:
    ...     return QueryDemand(name, 10.0, 0.0, Promises(period=1.0, deadline=0.5), instance=seconds)
    >>> for verdict in deadlines(Situation((query("a", 0.4), query("b", 0.3)), overhead=0.0)):
    ...     print(verdict.query, verdict.feasible, verdict.expected, round(verdict.room, 2))
    a no level 0.71 0.71
    b no level 0.71 0.71
    """
    periodic = [each for each in situation.queries if each.promises.period is not None]
    known = [each for each in periodic if each.instance is not None]
    for each in periodic:
        if each.instance is None:
            yield Verdict(each.name, _promise(each), "unknown", reason="no instance of it has been answered yet")
        else:
            own = known.index(each)
            yield _verdict(each, _fit(situation, known, 1.0, own), _room(situation, known, own))


def _verdict(query: QueryDemand, found: Fit, room: float) -> Verdict:
    feasible: Feasible = "yes" if room >= _BARELY else "barely" if room >= 1.0 else "no"
    if feasible != "no":
        return Verdict(query.name, _promise(query), feasible, f"in time, load {found.load:.0%}", room)
    demand = f"{duration_text(found.demand)} of work are due {duration_text(found.tightest)} after common releases"
    advice = "give it a longer deadline or period" + (
        "" if "thin" in query.promises.overload else ', or let overload have "thin", so that its level may fall'
    )
    return Verdict(query.name, _promise(query), feasible, f"level {found.level:.2f}", room, demand, advice)


def _promise(query: QueryDemand) -> str:
    due = duration_text(query.promises.deadline or query.promises.period or 0.0)
    return f"every {duration_text(query.promises.period or 0.0)}, due after {due}"


def _fit(situation: Situation, queries: Sequence[QueryDemand], factor: float, own: int) -> Fit:
    overhead = situation.overhead
    loads = [
        PeriodicLoad(
            each.name,
            lambda level, seconds=factor * (each.instance or 0.0): overhead + level * seconds,  # type: ignore[misc]
            each.promises.period or 0.0,
            each.promises.deadline or each.promises.period or 0.0,
        )
        for each in queries
    ]
    return fit(loads, blocking=overhead, capacity=situation.for_instances, of=loads[own])


def _room(situation: Situation, queries: Sequence[QueryDemand], own: int) -> float:
    """The factor by which instances may take longer with all of one query in time."""
    low, high = 0.0, _MOST
    while high - low > 1e-3 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if _fit(situation, queries, middle, own).level >= 1.0 else (low, middle)
    return low
