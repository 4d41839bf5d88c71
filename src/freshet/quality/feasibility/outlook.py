"""What judges of latencies share: the latencies to expect, how far rates may grow, what is overloaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from freshet.model import duration_text
from freshet.quality.feasibility.latencies import Latencies, apart, together
from freshet.quality.feasibility.situation import QueryDemand, Situation

BARELY: Final = 1.1
"""A promise is kept barely if a tenth more load would break it."""
STEPS: Final = 30
"""Number of factors of the load that are looked at."""
MOST: Final = 100.0
"""The greatest factor of load that is looked at."""
_CALM: Final = 1e-6
"""The factor of load that is as good as none."""
_HEAVY: Final = 12
"""Number of heavy queries that are tried as candidates to move away."""


def expected(situation: Situation) -> dict[str, Latencies]:
    """The latencies to expect with steps of one query or steps of all, whichever keeps the promises better on average:
    a step of all saves overhead, a step of one keeps tight promises."""
    return max((apart(situation), together(situation)), key=lambda found: average(_worths(situation, found)))


def _worths(situation: Situation, found: Mapping[str, Latencies]) -> list[float]:
    """From 0 to 1, how well each promise about latency is kept: by its curve, or by what is expected on average."""
    worths = []
    for query in situation.queries:
        latencies, promises = found[query.name], query.promises
        if promises.curve is not None:
            worths.append(latencies.utility(promises.curve))
        for measure, figure in query.strictest.items():
            observed = figure_of(measure, query, latencies)
            if observed:
                worths.append(min(1.0, figure / observed))
    if situation.bound is not None and situation.bound.measure == "response" and (mean := response(situation, found)):
        worths.append(min(1.0, situation.bound.value / mean))
    return worths


def response(situation: Situation, found: Mapping[str, Latencies]) -> float:
    """The mean response time of all answers; 0 if there are none."""
    answers = math.fsum(each.out for each in situation.queries)
    if not answers:
        return 0.0
    # Together, so that an endless wait of a query without answers does not count.
    return math.fsum(each.out * found[each.name].mean for each in situation.queries if each.out) / answers


def figure_of(measure: str, query: QueryDemand, latencies: Latencies) -> float | None:
    """What the mean latency of a query will be, or the bytes that wait for it; None if that is not known.

    The bytes follow from Little's law: what comes in per second, times how long it stays.

    >>> from freshet.model import Promises
    >>> query = QueryDemand("q", 100.0, 0.001, Promises(), tuple_bytes=80.0)
    >>> round(figure_of("memory", query, Latencies(step=0.5, busy=0.0, wait=0.0)))
    4000
    """
    if measure == "latency":
        return latencies.mean
    if measure == "memory" and query.tuple_bytes is not None:
        return query.rate * latencies.mean * query.tuple_bytes
    return None


def greatest_factor(situation: Situation) -> float:
    """The greatest factor of all rates that is worth a look: the workers are far beyond their capacity there."""
    return min(MOST, 1.5 / situation.load if situation.load else MOST)


def rooms(situation: Situation, margins: Callable[[Situation], Mapping[str, float]]) -> dict[str, float]:
    """The factor up to which all rates may grow until a margin falls below 0, for each that there is.

    It looks at a row of factors for all margins at once, and between them on a straight line. What is broken without
    any load has a room of 0.

    Args:
        situation: At the present rates.
        margins: What is left until each promise breaks; below 0 it is broken.
    """
    most = greatest_factor(situation)
    factors = [_CALM, *(most * step / STEPS for step in range(1, STEPS + 1))]
    levels = [margins(situation.scaled(factor)) for factor in factors]
    found = {}
    for name in levels[0]:
        column = [level[name] for level in levels]
        bad = next((place for place, value in enumerate(column) if value < 0.0), None)
        if bad is None:
            found[name] = most
        elif bad == 0:
            found[name] = 0.0
        else:
            above, below = column[bad - 1], -column[bad]
            found[name] = most * (bad - 1 + above / (above + below)) / STEPS
    return found


def overloaded(situation: Situation, latencies: Latencies) -> str:
    """What is overloaded: the workers, or only the promise (CAR §4.6)."""
    load = f"{percent(situation.load)} of the workers' time"
    if situation.load >= 1.0:
        return f"capacity: the queries take {load}"
    if latencies.endless:
        return f"capacity: the queries take {load}, and the overhead of their steps the rest"
    if latencies.step > latencies.wait * latencies.busy:
        return f"its own step takes {duration_text(latencies.step)}, although the queries take only {load}"
    return f"waits of {duration_text(latencies.wait)} on average, although the queries take only {load}"


def percent(share: float) -> str:
    """A share for people; one that is not 0 never looks like it.

    >>> percent(0.004), percent(0.126), percent(0.0)
    ('< 1 %', '13 %', '0 %')
    """
    return "< 1 %" if 0.0 < share < 0.005 else f"{100.0 * share:.0f} %"


def advice(situation: Situation, query: QueryDemand, loosened: str, is_kept: Callable[[Situation], bool]) -> str:
    """How to loosen the promise, and which query to move to another application.

    Args:
        situation: At the present rates.
        query: Whose promise cannot be kept.
        loosened: The promise that could be kept, in words; empty if there is none: over capacity no time is enough.
        is_kept: Whether the promise would be kept in another situation.
    """
    told = [loosened] if loosened else []
    others = sorted((each for each in situation.queries if each.name != query.name), key=lambda each: -each.load)
    for other in others[:_HEAVY]:
        if is_kept(situation.without(other.name)):
            told.append(f"move {other.name} to another application ({percent(other.load)} of a worker)")
            break
    if not told:
        told.append("give it more workers, lower rates, or let queries be thinned (overload = ['defer', 'thin'])")
    return ", or ".join(told)


def average(values: Iterable[float]) -> float:
    """The mean; 1 of nothing, because no promise is broken then."""
    found = list(values)
    return math.fsum(found) / len(found) if found else 1.0
