"""Can the promises be kept? Asked in one place, before and while an application runs.

A :class:`Situation` says what comes in and what it costs. Each kind of promise has a *judge*, a pure function that
gives verdicts; :data:`JUDGES` has all of them.
"""

from __future__ import annotations

from typing import Final

from freshet.quality.feasibility.balance import ALL, balance
from freshet.quality.feasibility.curves import curves, knee, qos_of
from freshet.quality.feasibility.deadlines import deadlines
from freshet.quality.feasibility.expectations import expectations
from freshet.quality.feasibility.latencies import Latencies, apart, together
from freshet.quality.feasibility.outlook import MOST
from freshet.quality.feasibility.situation import QueryDemand, Situation
from freshet.quality.feasibility.verdict import Feasible, PromiseJudge, Verdict

JUDGES: Final[list[PromiseJudge]] = [curves, deadlines, expectations, balance]
"""The judges, one for each kind of promise."""


def verdicts(situation: Situation) -> list[Verdict]:
    """The verdicts of all judges, in the order of the queries.

    >>> from freshet.model import Curve, Promises
    >>> query = QueryDemand("q", 10.0, 0.02, Promises(curve=Curve.deadline(1.0)))
    >>> [(each.query, each.feasible, each.promise) for each in verdicts(Situation((query,), overhead=0.005))]
    [('q', 'yes', 'curve, full worth up to 1 s')]
    """
    order = {each.name: place for place, each in enumerate(situation.queries)}
    found = [each for judge in JUDGES for each in judge(situation)]
    return sorted(found, key=lambda each: order.get(each.query, len(order)))


__all__ = [
    "ALL",
    "JUDGES",
    "MOST",
    "Feasible",
    "Latencies",
    "PromiseJudge",
    "QueryDemand",
    "Situation",
    "Verdict",
    "apart",
    "balance",
    "curves",
    "deadlines",
    "expectations",
    "knee",
    "qos_of",
    "together",
    "verdicts",
]
