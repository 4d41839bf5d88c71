"""Can expectations be met? Latency, memory and throughput to expect, beside what is wanted (MAV §4.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from freshet.model import MEASURES, Expectation
from freshet.quality.feasibility.latencies import Latencies
from freshet.quality.feasibility.outlook import BARELY, advice, expected, figure_of, overloaded, percent, rooms
from freshet.quality.feasibility.situation import QueryDemand, Situation
from freshet.quality.feasibility.verdict import Feasible, Verdict

_BY_LATENCY: Final = ("latency", "memory")
"""Measures that follow from latencies: the more comes in, the worse they are."""


def expectations(situation: Situation) -> Iterator[Verdict]:
    """A verdict for each measure of which something is expected, against the strictest figure over the query's life.

    Periodic queries are judged by their deadlines. Which strategy the optimizer will choose is not foreseen: a measure
    counts as it would with steps of one query or of all, whichever suits the promises better.

    >>> from freshet.model import Expectations, Promises
    >>> wish = Expectations.parse({"latency": {"class": "must", "points": "20 ms"}, "throughput": "50 rows/s"})
    >>> query = QueryDemand("q", 10.0, 0.01, Promises(expect=wish), out=10.0)
    >>> for each in expectations(Situation((query,), overhead=0.005)):
    ...     print(each.promise, each.feasible, each.expected, sep=" | ")
    latency 20 ms (must) | yes | 16.3 ms
    throughput 50 rows/s (best-effort) | no | 10 rows/s
    """
    wanted = [each for each in situation.queries if each.strictest]
    if not wanted:
        return
    found, room = expected(situation), rooms(situation, _margins)
    for query in wanted:
        for wish in query.promises.expect:
            if not query.rate:
                yield Verdict(query.name, _promise(query, wish), "unknown", reason="nothing has come in for it yet")
            elif wish.measure in _BY_LATENCY:
                yield _by_latency(situation, query, wish, found[query.name], room.get(_key(query.name, wish.measure)))
            else:
                yield _by_rate(situation, query, wish)


def _margins(situation: Situation) -> dict[str, float]:
    """By measure of a query, the share of its expectation that is left."""
    found, margins = expected(situation), {}
    for query in situation.queries:
        for measure, figure in query.strictest.items():
            observed = figure_of(measure, query, found[query.name])
            if observed is not None:
                margins[_key(query.name, measure)] = 1.0 - observed / figure
    return margins


def _key(query: str, measure: str) -> str:
    return f"{query}.{measure}"


def _by_latency(
    situation: Situation, query: QueryDemand, wish: Expectation, latencies: Latencies, room: float | None
) -> Verdict:
    name, promise, text = query.name, _promise(query, wish), MEASURES[wish.measure].text
    observed = figure_of(wish.measure, query, latencies)
    if observed is None or room is None:
        return Verdict(name, promise, "unknown", reason="how large its tuples are is known only once some have waited")
    shown = "more comes in than can be done" if math.isinf(observed) else text(observed)
    feasible: Feasible = "no" if observed > query.strictest[wish.measure] else "barely" if room < BARELY else "yes"
    if feasible != "no":
        return Verdict(name, promise, feasible, shown, room)
    over = situation.load >= 1.0 or latencies.endless
    loosened = "" if over else f"expect {text(observed)}"
    helps = advice(situation, query, loosened, lambda other: _margins(other)[_key(name, wish.measure)] >= 0.0)
    return Verdict(name, promise, feasible, shown, min(room, 1.0), overloaded(situation, latencies), helps)


def _by_rate(situation: Situation, query: QueryDemand, wish: Expectation) -> Verdict:
    """Throughput: what comes out of what comes in, as far as the workers can do it. More load never breaks it."""
    text, figure = MEASURES[wish.measure].text, query.strictest[wish.measure]
    observed = query.out / max(1.0, situation.load)
    if observed >= figure:
        return Verdict(query.name, _promise(query, wish), "yes", text(observed))
    if query.out < figure:
        reason = f"of {text(query.rate)} that come in, no more than {text(query.out)} come out"
    else:
        reason = f"capacity: the queries take {percent(situation.load)} of the workers' time"
    helps = advice(
        situation, query, f"expect {text(observed)}", lambda other: query.out / max(1.0, other.load) >= figure
    )
    return Verdict(query.name, _promise(query, wish), "no", text(observed), None, reason, helps)


def _promise(query: QueryDemand, wish: Expectation) -> str:
    figure = MEASURES[wish.measure].text(query.strictest[wish.measure])
    least = "" if len(wish.points) == 1 else ", the strictest over its life"
    return f"{wish.measure} {figure} ({wish.priority.name}){least}"
