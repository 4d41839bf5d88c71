"""Can latency curves be kept? The QoS to expect, the knee, and what to loosen or move (CAR §4.3.1, §4.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from freshet.model import duration_text
from freshet.quality.feasibility.latencies import Latencies, apart, promised, together
from freshet.quality.feasibility.situation import QueryDemand, Situation
from freshet.quality.feasibility.verdict import Feasible, Verdict

GOOD: Final = 0.95
"""The QoS from which on a curve counts as kept, as in CAR's figures."""
BARELY: Final = 1.1
"""A promise is kept barely if a tenth more load would break it."""
_MOST: Final = 100.0
"""The greatest factor of load that is looked at."""
_STEPS: Final = 30
"""Number of factors that are looked at."""
_HEAVY: Final = 12
"""Number of heavy queries that are tried as candidates to move away."""


def expected(situation: Situation) -> dict[str, Latencies]:
    """The latencies to expect with steps of one query or steps of all, whichever gives the better average QoS: a step
    of all saves overhead, a step of one keeps tight promises."""
    return max((apart(situation), together(situation)), key=lambda found: _average(_qos(situation, found)))


def qos_of(situation: Situation) -> dict[str, float]:
    """The QoS to expect for each query with a latency curve."""
    return _qos(situation, expected(situation))


def _qos(situation: Situation, found: Mapping[str, Latencies]) -> dict[str, float]:
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
    most = min(_MOST, 1.5 / situation.load if situation.load else _MOST)

    def is_good(factor: float) -> bool:
        return _average(qos_of(situation.scaled(factor))) >= GOOD

    # Steps of one query starve the last of them by overhead alone, and less so when trains grow: QoS need not fall all
    # the way. What counts is where it falls for the first time.
    factors = [most * step / _STEPS for step in range(1, _STEPS + 1)]
    bad = next((place for place, factor in enumerate(factors) if not is_good(factor)), None)
    if bad is None:
        return most
    low, high = factors[bad - 1] if bad else 0.0, factors[bad]
    while high - low > 0.002 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_good(middle) else (low, middle)
    return low


def rooms(situation: Situation) -> dict[str, float]:
    """The factor up to which all rates may grow, for each query with a curve, until its QoS is no longer good.

    It looks at a row of factors for all queries at once, and between them on a straight line.
    """
    most = min(_MOST, 1.5 / situation.load if situation.load else _MOST)
    factors = [most * step / _STEPS for step in range(1, _STEPS + 1)]
    levels = [qos_of(situation.scaled(factor)) for factor in factors]
    found = {}
    for name in levels[0]:
        column = [1.0, *(level[name] for level in levels)]
        bad = next((place for place, value in enumerate(column) if value < GOOD), None)
        if bad is None:
            found[name] = most
        else:
            above, below = column[bad - 1] - GOOD, GOOD - column[bad]
            found[name] = most * (bad - 1 + above / (above + below)) / _STEPS
    return found


def curves(situation: Situation) -> Iterator[Verdict]:
    """A verdict for each latency curve."""
    found, qos, room = expected(situation), qos_of(situation), rooms(situation)
    for query in situation.queries:
        if query.promises.curve is not None:
            yield _verdict(situation, query, found[query.name], qos[query.name], room[query.name])


def _verdict(situation: Situation, query: QueryDemand, latencies: Latencies, qos: float, room: float) -> Verdict:
    name = query.name
    if not query.rate:
        return Verdict(name, _promise(query), "unknown", reason="nothing has come in for it yet")
    feasible: Feasible = "no" if qos < GOOD else "barely" if room < BARELY else "yes"
    p95 = latencies.quantile(0.95)
    late = "more comes in than can be done" if math.isinf(p95) else f"p95 {duration_text(p95)}"
    expected = f"QoS {100.0 * qos:.0f} %, {late}"
    if feasible != "no":
        return Verdict(name, _promise(query), feasible, expected, room)
    reason, advice = _why(situation, latencies), _advice(situation, query, latencies)
    return Verdict(name, _promise(query), feasible, expected, min(room, 1.0), reason, advice)


def _promise(query: QueryDemand) -> str:
    limit = promised(query)
    return "curve" if math.isinf(limit) else f"curve, full worth up to {duration_text(limit)}"


def _why(situation: Situation, latencies: Latencies) -> str:
    """What is overloaded: the workers, or only the promise (CAR §4.6)."""
    load = f"{100.0 * situation.load:.0f} % of the workers' time"
    if situation.load >= 1.0:
        return f"capacity: the queries take {load}"
    if latencies.step > latencies.wait * latencies.busy:
        return f"its own step takes {duration_text(latencies.step)}, although the queries take only {load}"
    return f"waits of {duration_text(latencies.wait)} on average, although the queries take only {load}"


def _advice(situation: Situation, query: QueryDemand, latencies: Latencies) -> str:
    """Which promise to loosen, and which query to move to another application."""
    p95, told = latencies.quantile(0.95), []
    if math.isfinite(p95):
        told.append(f"let its worth last for {duration_text(p95)}")
    others = sorted((each for each in situation.queries if each.name != query.name), key=lambda each: -each.load)
    for other in others[:_HEAVY]:
        if qos_of(situation.without(other.name))[query.name] >= GOOD:
            told.append(f"move {other.name} to another application ({100.0 * other.load:.0f} % of a worker)")
            break
    if not told and situation.load >= 1.0:
        told.append("give it more workers, lower rates, or let queries be thinned (overload = ['defer', 'thin'])")
    return ", or ".join(told)


def _average(values: Mapping[str, float]) -> float:
    return math.fsum(values.values()) / len(values) if values else 1.0
