"""All queries of a run together: the columns of its history, summed up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from freshet.quality.history.record import HistoryRecord, QueryCourse, Readings


def together(record: HistoryRecord) -> QueryCourse:
    """The course of all queries: freshness and QoS as means over queries (FAS Eq. 3, CAR §4.3.2), latency over all
    answers, the greatest of their 95th percentiles, and everything that waits.

    >>> def query(**columns):
    ...     none = dict.fromkeys(QueryCourse.__annotations__, [None])
    ...     return none | columns
    >>> a = query(freshness=[0.5], latency_s=[1.0], out_per_s=[3.0], waiting=[4], qos=[1.0])
    >>> b = query(freshness=[1.0], latency_s=[2.0], out_per_s=[1.0], waiting=[5], qos=[None])
    >>> every = together({"times": [0.0], "queries": {"a": a, "b": b}})
    >>> every["freshness"], every["latency_s"], every["waiting"], every["qos"]
    ([0.75], [1.25], [9], [1.0])
    """
    queries, count = record["queries"].values(), len(record["times"])
    columns: dict[str, Readings] = {}
    for name, way in _WAYS.items():
        columns[name] = [_over((each[name][at] for each in queries), way) for at in range(count)]  # type: ignore[literal-required]
    columns["latency_s"] = [_latency(queries, at) for at in range(count)]
    return {"curve": None, **columns}  # type: ignore[typeddict-item]


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


_WAYS: dict[str, Callable[[list[float]], float]] = {
    "weight": max,
    "waiting": sum,
    "freshness": _mean,
    "p95_s": max,
    "qos": _mean,
    "running_qos": _mean,
    "in_per_s": sum,
    "out_per_s": sum,
}


def _over(values: Iterable[float | None], way: Callable[[list[float]], float]) -> float | None:
    known = [each for each in values if each is not None]
    return way(known) if known else None


def _latency(queries: Iterable[QueryCourse], at: int) -> float | None:
    """The mean over all answers since the sample before."""
    pairs = [(each["latency_s"][at], each["out_per_s"][at]) for each in queries]
    known = [(mean, rate) for mean, rate in pairs if mean is not None and rate]
    answers = math.fsum(rate for _, rate in known)
    return math.fsum(mean * rate for mean, rate in known) / answers if answers else None
