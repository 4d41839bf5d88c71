"""Can the bound on all outputs together be kept? Their response time to expect, beside what is wanted (FAS §5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from freshet.model import duration_text
from freshet.quality.feasibility.outlook import BARELY, expected, percent, response, rooms
from freshet.quality.feasibility.situation import Situation
from freshet.quality.feasibility.verdict import Feasible, Verdict

ALL: Final = "all queries"
"""Stands for the name of a query in the verdict."""


def balance(situation: Situation) -> Iterator[Verdict]:
    """A verdict on the bound of the application, if it has one. A bound on freshness cannot be judged by rates and
    costs: they do not tell which tuples will come out of a query.

    >>> from freshet.model import Promises
    >>> from freshet.model.promises.balance import BalanceBound
    >>> from freshet.quality.feasibility.situation import QueryDemand
    >>> query = QueryDemand("q", 10.0, 0.01, Promises(), out=10.0)
    >>> for figure in ("10 ms", "1 s"):
    ...     [verdict] = balance(Situation((query,), 0.005, bound=BalanceBound.parse({"response": figure})))
    ...     print(verdict.promise, verdict.feasible, verdict.expected, sep=" | ")
    response at most 10 ms | no | 16.3 ms
    response at most 1 s | yes | 16.3 ms
    """
    bound = situation.bound
    if bound is None:
        return
    promise = bound.text()
    if bound.measure != "response":
        yield Verdict(ALL, promise, "unknown", reason="rates and costs do not tell how fresh outputs will be")
        return
    if not any(each.out for each in situation.queries):
        yield Verdict(ALL, promise, "unknown", reason="no answer has come out yet")
        return
    mean, room = response(situation, expected(situation)), rooms(situation, _margins)[ALL]
    over = situation.load >= 1.0 or math.isinf(mean)
    shown = "more comes in than can be done" if over else duration_text(mean)
    feasible: Feasible = "no" if over or mean > bound.value else "barely" if room < BARELY else "yes"
    if feasible != "no":
        yield Verdict(ALL, promise, feasible, shown, room)
        return
    load = f"the queries take {percent(situation.load)} of the workers' time"
    reason = f"capacity: {load}" if over else f"steps and waits take that long, although {load}"
    helps = "give it more workers, or lower rates" if over else f"expect {duration_text(mean)}"
    yield Verdict(ALL, promise, feasible, shown, min(room, 1.0), reason, helps)


def _margins(situation: Situation) -> Mapping[str, float]:
    bound = situation.bound
    return {} if bound is None else {ALL: 1.0 - response(situation, expected(situation)) / bound.value}
