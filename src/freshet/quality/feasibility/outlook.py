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
    return worths


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


def rooms(situation: Situation, margins: Callable[[Situation], Mapping[str, float]], calm: float) -> dict[str, float]:
    """The factor up to which all rates may grow until a margin falls below 0, for each that there is.

    It looks at a row of factors for all margins at once, and between them on a straight line.

    Args:
        situation: At the present rates.
        margins: What is left until each promise breaks; below 0 it is broken.
        calm: A margin without any load.
    """
    most = greatest_factor(situation)
    levels = [margins(situation.scaled(most * step / STEPS)) for step in range(1, STEPS + 1)]
    found = {}
    for name in levels[0]:
        column = [calm, *(level[name] for level in levels)]
        bad = next((place for place, value in enumerate(column) if value < 0.0), None)
        if bad is None:
            found[name] = most
        else:
            above, below = column[bad - 1], -column[bad]
            found[name] = most * (bad - 1 + above / (above + below)) / STEPS
    return found


def overloaded(situation: Situation, latencies: Latencies) -> str:
    """What is overloaded: the workers, or only the promise (CAR §4.6)."""
    load = f"{100.0 * situation.load:.0f} % of the workers' time"
    if situation.load >= 1.0:
        return f"capacity: the queries take {load}"
    if latencies.step > latencies.wait * latencies.busy:
        return f"its own step takes {duration_text(latencies.step)}, although the queries take only {load}"
    return f"waits of {duration_text(latencies.wait)} on average, although the queries take only {load}"


def advice(situation: Situation, query: QueryDemand, loosened: str, is_kept: Callable[[Situation], bool]) -> str:
    """How to loosen the promise, and which query to move to another application.

    Args:
        situation: At the present rates.
        query: Whose promise cannot be kept.
        loosened: The promise that could be kept, in words; empty if there is none.
        is_kept: Whether the promise would be kept in another situation.
    """
    told = [loosened] if loosened else []
    others = sorted((each for each in situation.queries if each.name != query.name), key=lambda each: -each.load)
    for other in others[:_HEAVY]:
        if is_kept(situation.without(other.name)):
            told.append(f"move {other.name} to another application ({100.0 * other.load:.0f} % of a worker)")
            break
    if not told and situation.load >= 1.0:
        told.append("give it more workers, lower rates, or let queries be thinned (overload = ['defer', 'thin'])")
    return ", or ".join(told)


def average(values: Iterable[float]) -> float:
    """The mean; 1 of nothing, because no promise is broken then."""
    found = list(values)
    return math.fsum(found) / len(found) if found else 1.0
