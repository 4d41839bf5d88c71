"""Can latency curves be kept? The QoS to expect, the knee, and what to loosen or move (CAR §4.3.1, §4.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from freshet.model import duration_text
from freshet.quality.feasibility.latencies import Latencies
from freshet.quality.feasibility.outlook import (
    BARELY,
    STEPS,
    advice,
    average,
    expected,
    greatest_factor,
    overloaded,
    rooms,
)
from freshet.quality.feasibility.situation import QueryDemand, Situation
from freshet.quality.feasibility.verdict import Feasible, Verdict

GOOD: Final = 0.95
"""The QoS from which on a curve counts as kept, as in CAR's figures."""
UNEXPLAINED: Final = 2.0
"""From this factor on, measured latencies say that the expected ones are not to be trusted."""


def qos_of(situation: Situation) -> dict[str, float]:
    """The QoS to expect for each query with a latency curve."""
    found = expected(situation)
    return {
        each.name: found[each.name].utility(each.promises.curve)
        for each in situation.queries
        if each.promises.curve is not None
    }


def knee(situation: Situation) -> float:
    """The factor up to which all rates may grow until the average QoS is no longer good; below 1: it is not now.

    >>> from freshet.model import Curve, Promises
    >>> query = QueryDemand("q", 10.0, 0.01, Promises(curve=Curve.deadline(0.1)))
    >>> round(knee(Situation((query,), overhead=0.0)), 1)
    8.0
    """

    def is_good(factor: float) -> bool:
        return average(qos_of(situation.scaled(factor)).values()) >= GOOD

    # Steps of one query starve the last of them by overhead alone, and less so when trains grow: QoS need not fall all
    # the way. What counts is where it falls for the first time.
    most = greatest_factor(situation)
    factors = [most * step / STEPS for step in range(1, STEPS + 1)]
    bad = next((place for place, factor in enumerate(factors) if not is_good(factor)), None)
    if bad is None:
        return most
    low, high = factors[bad - 1] if bad else 0.0, factors[bad]
    while high - low > 0.002 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_good(middle) else (low, middle)
    return low


def curves(situation: Situation) -> Iterator[Verdict]:
    """A verdict for each latency curve."""
    found, qos = expected(situation), qos_of(situation)
    if not qos:
        return
    room = rooms(situation, _margins)
    for query in situation.queries:
        if query.promises.curve is not None:
            yield _verdict(situation, query, found[query.name], qos[query.name], room[query.name])


def _margins(situation: Situation) -> dict[str, float]:
    return {name: qos - GOOD for name, qos in qos_of(situation).items()}


def _verdict(situation: Situation, query: QueryDemand, latencies: Latencies, qos: float, room: float) -> Verdict:
    name, promise = query.name, _promise(query)
    if not query.rate:
        return Verdict(name, promise, "unknown", reason="nothing has come in for it yet")
    feasible: Feasible = "no" if qos < GOOD else "barely" if room < BARELY else "yes"
    p95 = latencies.quantile(0.95)
    late = "more comes in than can be done" if math.isinf(p95) else f"p95 {duration_text(p95)}"
    shown = f"QoS {100.0 * qos:.0f} %, {late}"
    if feasible != "no":
        if query.measured is not None and _is_unexplained(query, p95):
            return Verdict(name, promise, "unknown", shown, room, _unexplained(query.measured))
        return Verdict(name, promise, feasible, shown, room)
    # What was measured at this rate may be more than rates, costs and overhead explain; a promise has to stand both.
    enough = max(p95, query.measured or 0.0)
    over = situation.load >= 1.0 or latencies.endless
    loosened = "" if over else f"let its worth last for {duration_text(enough)}"
    helps = advice(situation, query, loosened, lambda other: qos_of(other)[name] >= GOOD)
    return Verdict(name, promise, feasible, shown, min(room, 1.0), overloaded(situation, latencies), helps)


def _is_unexplained(query: QueryDemand, p95: float) -> bool:
    """Whether a query was so much slower than it should be that the expectation is not to be trusted."""
    curve, measured = query.promises.curve, query.measured
    return (
        curve is not None
        and measured is not None
        and measured > UNEXPLAINED * p95
        and curve.utility(measured) < curve.utility(p95)
    )


def _unexplained(measured: float) -> str:
    return (
        f"p95 was {duration_text(measured)}, and rates, costs and overhead do not explain that: tuples come in bursts, "
        "or other work keeps the machine busy"
    )


def _promise(query: QueryDemand) -> str:
    limit = math.inf if query.promises.curve is None else query.promises.curve.promise
    return "curve" if math.isinf(limit) else f"curve, full worth up to {duration_text(limit)}"
