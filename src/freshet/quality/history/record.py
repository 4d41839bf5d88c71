"""A history as columns of plain values, which a file can hold and a page can draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NotRequired, TypedDict

from freshet.model import Promises
from freshet.quality.history.sample import MachineSample, QuerySample, RunSample
from freshet.quality.history.settled import settled

FORMAT: Final = 1
"""Version of the keys of a history; new keys do not change it."""

Readings = list[float | None]
"""A value for each sample; None where there is none."""


class QueryCourse(TypedDict):
    """The course of a query: what holds for the time from the sample before to each sample."""

    curve: list[tuple[float, float]] | None
    weight: Readings
    waiting: Readings
    freshness: Readings
    latency_s: Readings
    p95_s: Readings
    qos: Readings
    running_qos: Readings
    in_per_s: Readings
    out_per_s: Readings


class MachineCourse(TypedDict):
    """The course of workers and policy."""

    busy: Readings
    deciding: Readings
    units_per_s: Readings
    decisions_per_s: Readings


class HistoryRecord(TypedDict):
    """The course of a run.

    Times are seconds since ``start``. If ``real``, that is a time since the epoch, else a simulated one. ``feasible``
    says whether promises can be kept, if the run judged that.
    """

    format: int
    app: str
    policy: str
    start: float
    real: bool
    times: list[float]
    queries: dict[str, QueryCourse]
    machine: MachineCourse
    decisions: list[str | None]
    marks: list[tuple[float, str]]
    feasible: NotRequired[str]


def record_of(
    samples: Sequence[RunSample],
    marks: Iterable[tuple[float, str]],
    promises: Mapping[str, Promises],
    *,
    app: str,
    policy: str,
    workers: int,
    real: bool,
) -> HistoryRecord:
    """The samples of a run as columns.

    >>> machine = MachineSample(0.0, 0, 0.0, 0), MachineSample(1.0, 5, 0.1, 9)
    >>> before = QuerySample(0, 0.0, 0, 0.0, None, 0, 0.0, 0, 1.0)
    >>> later = QuerySample(3, 1.5, 4, 2.0, 0.9, 4, 3.0, 10, 1.0)
    >>> samples = [RunSample(10.0, {"q": before}, machine[0]), RunSample(12.0, {"q": later}, machine[1], "why")]
    >>> record = record_of(samples, [], {}, app="a", policy="fcfs", workers=2, real=False)
    >>> record["times"], record["queries"]["q"]["freshness"], record["queries"]["q"]["latency_s"]
    ([0.0, 2.0], [None, 0.75], [None, 0.5])
    >>> record["machine"]["busy"], record["queries"]["q"]["qos"], record["decisions"]
    ([None, 0.25], [None, 0.75], [None, 'why'])
    """
    start = samples[0].time if samples else 0.0
    names = dict.fromkeys(name for each in samples for name in each.queries)
    curves = {name: each.curve for name, each in promises.items()}
    return {
        "format": FORMAT,
        "app": app,
        "policy": policy,
        "start": start,
        "real": real,
        "times": [_short(each.time - start) or 0.0 for each in samples],
        "queries": {
            name: _query(samples, name, None if (curve := curves.get(name)) is None else list(curve.points))
            for name in names
        },
        "machine": _machine(samples, workers),
        "decisions": [each.decision for each in samples],
        "marks": [(_short(time - start) or 0.0, text) for time, text in marks],
    }


def _query(samples: Sequence[RunSample], name: str, curve: list[tuple[float, float]] | None) -> QueryCourse:
    mine = [each.queries.get(name) for each in samples]
    times = [each.time for each in samples]
    here = {number: each.fresh for number, each in enumerate(mine) if each is not None and each.fresh is not None}
    fresh = dict(zip(here, settled([times[number] for number in here], list(here.values())), strict=True))
    steps = [(mine[number - 1], each) if number else (None, each) for number, each in enumerate(mine)]

    def column(value: Callable[[QuerySample, QuerySample], float | None]) -> Readings:
        found = [None if a is None or b is None else value(a, b) for a, b in steps]
        return list(map(_short, found))

    def rate(value: Callable[[QuerySample], float]) -> Readings:
        seconds = [0.0, *(later - earlier for earlier, later in pairwise(times))]
        return [
            None if a is None or b is None or not passed else _short(_growth(value(a), value(b)) / passed)
            for (a, b), passed in zip(steps, seconds, strict=True)
        ]

    shares = [
        _share(fresh.get(number - 1), fresh.get(number), times[number] - times[number - 1]) if number else None
        for number in range(len(times))
    ]
    return {
        "curve": curve,
        "weight": [None if each is None else _short(each.weight) for each in mine],
        "waiting": [None if each is None else each.waiting for each in mine],
        "freshness": shares,
        "latency_s": column(lambda a, b: _mean(a.response, b.response, a.answers, b.answers)),
        "p95_s": column(lambda _, b: b.p95),
        "qos": column(lambda a, b: _mean(a.utility, b.utility, a.rated, b.rated)),
        "running_qos": column(lambda _, b: b.utility / b.rated if b.rated else None),
        "in_per_s": rate(lambda each: each.tuples_in),
        "out_per_s": rate(lambda each: each.answers),
    }


def _machine(samples: Sequence[RunSample], workers: int) -> MachineCourse:
    def rate(value: Callable[[MachineSample], float], most: float | None = None) -> Readings:
        found: Readings = [None] if samples else []
        for earlier, later in pairwise(samples):
            each = _growth(value(earlier.machine), value(later.machine)) / (later.time - earlier.time)
            found.append(_short(each if most is None else min(most, each)))
        return found

    return {
        "busy": rate(lambda each: each.busy / workers, 1.0),
        "deciding": rate(lambda each: each.deciding, 1.0),
        "units_per_s": rate(lambda each: each.units),
        "decisions_per_s": rate(lambda each: each.decisions),
    }


def _growth(earlier: float, later: float) -> float:
    """How much a sum has grown. A meter that began anew, as after a change of the curve, counts from 0."""
    return later - earlier if later >= earlier else later


def _mean(sum_before: float, sum_after: float, count_before: int, count_after: int) -> float | None:
    if count_after < count_before:
        sum_before, count_before = 0.0, 0
    return (sum_after - sum_before) / (count_after - count_before) if count_after > count_before else None


def _share(before: float | None, after: float | None, passed: float) -> float | None:
    if before is None or after is None or passed <= 0.0:
        return None
    return _short(min(1.0, max(0.0, (after - before) / passed)))


def _short(value: float | None) -> float | None:
    """A value with as many digits as a picture can show."""
    return None if value is None else float(f"{value:.5g}")
