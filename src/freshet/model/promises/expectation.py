"""Expectations: what a query's measures should be over its life."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from freshet.model.errors import UserError
from freshet.model.promises.measure import MEASURES, QosMeasure
from freshet.model.promises.priority import BEST_EFFORT, CLASSES, PriorityClass, class_of
from freshet.model.units import duration_text, parse_duration

LifePoint = tuple[float, float]
"""(seconds since the query's first start, expected figure)"""
_KEYS: Final = ("class", "points", "intervals")


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of one measure over a query's life, and how much that counts (MAV §4.2-4.3).

    The expected figure is linear between neighbouring points, within an interval and between intervals, and constant
    before the first and after the last. If two points have the same time, the later one holds from then on.

    Args:
        measure: Name of the measure.
        priority: The class of the expectation.
        points: (seconds since the first start, figure) in the order of time; those of all intervals, one after the
            other.

    >>> wish = Expectation.parse("latency", {"intervals": [[(0, 2), (10, 1)], [(20, 0.5), (30, 0.5)]]})
    >>> wish.at(5.0), wish.at(15.0), wish.at(40.0), wish.priority.name
    (1.5, 0.75, 0.5, 'best-effort')
    """

    measure: str
    priority: PriorityClass
    points: tuple[LifePoint, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise UserError("an expectation needs at least one point [time, value]")

    @classmethod
    def parse(cls, measure: str, given: Any, classes: Mapping[str, PriorityClass] = CLASSES) -> Expectation:
        """The expectation that a user writes: a value, points, or a table with a class and points or intervals.

        >>> Expectation.parse("latency", "2 s").points
        ((0.0, 2.0),)
        >>> steps = Expectation.parse("memory", {"class": "must", "points": [[0, "10 MB"], ["1 min", "1 MB"]]})
        >>> steps.priority.name, steps.at(30.0)
        ('must', 5500000.0)
        >>> Expectation.parse("latency", {"intervals": [[[0, 2], [10, 1]], [[5, 1], [20, 1]]]})
        Traceback (most recent call last):
        freshet.model.errors.UserError: intervals[1] begins at 5 s, before intervals[0] ends at 10 s: let them ...
        """
        known = measure_of(measure)
        if isinstance(given, Expectation):
            if given.measure != measure:
                raise UserError(f"an expectation of {given.measure} cannot be one of {measure}")
            return given
        if not isinstance(given, Mapping):
            given = {"points": given}
        for key in given:
            if key not in _KEYS:
                raise UserError(f"{key!r} is not a key of an expectation: it has class, and points or intervals")
        if ("points" in given) == ("intervals" in given):
            raise UserError("needs either points, such as [[0, VALUE]], or intervals, a list of such lists")
        priority = class_of(given.get("class", classes[BEST_EFFORT.name]), classes)
        if "points" in given:
            return cls(measure, priority, tuple(_interval(known, given["points"], "points")))
        return cls(measure, priority, tuple(_intervals(known, given["intervals"])))

    def at(self, age: float) -> float:
        """The figure that is expected when the query is so old."""
        index = bisect_right(self.points, age, key=lambda point: point[0])
        if index in (0, len(self.points)):
            return self.points[max(0, index - 1)][1]
        (begin, low), (end, high) = self.points[index - 1 : index + 1]
        return low + (high - low) * (age - begin) / (end - begin)

    @property
    def strictest(self) -> float:
        """The figure that is hardest to meet, over the whole life.

        >>> Expectation.parse("latency", [[0, 2], [10, 1]]).strictest
        1.0
        >>> Expectation.parse("throughput", [[0, 2], [10, 1]]).strictest
        2.0
        """
        figures = [figure for _, figure in self.points]
        return min(figures) if MEASURES[self.measure].better == "low" else max(figures)

    def text(self) -> str:
        """For people.

        >>> Expectation.parse("latency", {"class": "must", "points": [[0, 2], [10, 1]]}).text()
        'latency 2 s at 0 s, 1 s at 10 s (must, weight 1)'
        """
        shown = MEASURES[self.measure].text
        values = ", ".join(f"{shown(figure)} at {duration_text(age)}" for age, figure in self.points)
        values = shown(self.points[0][1]) if len(self.points) == 1 else values
        return f"{self.measure} {values} ({self.priority.name}, weight {self.priority.weight:g})"


@dataclass(frozen=True, slots=True)
class Expectations:
    """All that is expected of a query.

    Args:
        each: One expectation for each measure.
        weights: Weights of all classes that there are.
        every: Seconds between looks at the query; None: as often as at others.

    >>> wishes = Expectations.parse({"latency": "2 s", "memory": {"class": "must", "points": "10 MB"}})
    >>> [wish.measure for wish in wishes], wishes.weight, wishes.floor(1.0), wishes.floor(0.01)
    (['latency', 'memory'], 1.0, 0.5, 0.0)
    >>> bool(Expectations())
    False
    """

    each: tuple[Expectation, ...] = ()
    weights: frozenset[float] = frozenset(known.weight for known in CLASSES.values())
    every: float | None = None

    @classmethod
    def parse(cls, given: Any, classes: Mapping[str, PriorityClass] = CLASSES) -> Expectations:
        """The expectations that a user writes, by measure; ``every`` says how often the query is looked at.

        >>> Expectations.parse({"latncy": "2 s"})
        Traceback (most recent call last):
        freshet.model.errors.UserError: expect.latncy: there is no such measure (there are: latency, memory, throughput)
        """
        if isinstance(given, Expectations):
            return given
        if not isinstance(given, Mapping):
            raise UserError(f'expect: is a table by measure, such as {{"latency": "2 s"}}, not {given!r}')
        found: list[Expectation] = []
        every = None
        for key, value in given.items():
            try:
                if key == "every":
                    every = _every(value)
                else:
                    found.append(Expectation.parse(key, value, classes))
            except UserError as error:
                raise UserError(f"expect.{key}: {error}") from None
        return cls._of(found, frozenset(known.weight for known in classes.values()), every)

    @classmethod
    def _of(cls, each: Sequence[Expectation], weights: frozenset[float], every: float | None) -> Expectations:
        order = list(MEASURES)
        kept = tuple(sorted(each, key=lambda wish: order.index(wish.measure)))
        return cls(kept, weights | {wish.priority.weight for wish in kept}, every)

    def __iter__(self) -> Iterator[Expectation]:
        return iter(self.each)

    def __bool__(self) -> bool:
        return bool(self.each)

    def get(self, measure: str) -> Expectation | None:
        """The expectation of a measure, if there is one."""
        return next((wish for wish in self.each if wish.measure == measure), None)

    def changed(self, measure: str, expectation: Expectation | None) -> Expectations:
        """The same with another expectation of one measure, or without it.

        >>> wishes = Expectations.parse({"latency": "2 s"})
        >>> wishes.changed("latency", None).each
        ()
        """
        others = [wish for wish in self.each if wish.measure != measure]
        return self._of([*others, *([] if expectation is None else [expectation])], self.weights, self.every)

    def or_latency(self, seconds: float) -> Expectations:
        """The same, with a constant latency of best effort if none is expected."""
        if self.get("latency") is not None:
            return self
        return self.changed("latency", Expectation("latency", BEST_EFFORT, ((0.0, seconds),)))

    @property
    def weight(self) -> float:
        """Weight of its greatest class; 0 if nothing is expected."""
        return max((wish.priority.weight for wish in self.each), default=0.0)

    def floor(self, weight: float) -> float:
        """Weight of the next class below one: what its weight may be reduced to (MAV Eq. 2 with its example)."""
        return max((other for other in self.weights if other < weight), default=0.0)


def measure_of(name: object) -> QosMeasure:
    """The measure of a name.

    >>> measure_of("memory").better
    'low'
    """
    if not isinstance(name, str) or name not in MEASURES:
        raise UserError(f"there is no such measure (there are: {', '.join(MEASURES)})")
    return MEASURES[name]


def _every(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise UserError(f"must be a duration such as '3 s', not {given!r}")
    seconds = parse_duration(given)
    if seconds <= 0.0:
        raise UserError("must be above 0, such as '3 s'")
    return seconds


def _intervals(measure: QosMeasure, given: Any) -> Iterator[LifePoint]:
    """The points of intervals, none of which may begin before the one in front of it ends."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise UserError("intervals is a list of lists of points, such as [[[0, VALUE], [10, VALUE]], [[20, VALUE]]]")
    for number, each in enumerate(given):
        if isinstance(each, str) or not isinstance(each, Sequence):
            shown = f"[[0, {measure.example!r}]]"
            raise UserError(f"intervals[{number}] must be a list of points, such as {shown}, not {each!r}")
    whole = [list(_interval(measure, each, f"intervals[{number}]")) for number, each in enumerate(given)]
    for number, (before, after) in enumerate(pairwise(whole)):
        if after[0][0] < before[-1][0]:
            ends, begins = duration_text(before[-1][0]), duration_text(after[0][0])
            raise UserError(
                f"intervals[{number + 1}] begins at {begins}, before intervals[{number}] ends at {ends}: "
                "let them follow one another"
            )
    for interval in whole:
        yield from interval


def _interval(measure: QosMeasure, given: Any, place: str) -> Iterator[LifePoint]:
    """The points of one interval; a single value holds for ever."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        yield 0.0, measure.value(given)
        return
    if not given:
        raise UserError(f"{place} has no points: use at least one, such as [[0, {measure.example!r}]]")
    latest = 0.0
    for number, point in enumerate(given):
        age, figure = _point(measure, point, f"{place}[{number}]")
        if age < latest:
            raise UserError(f"{place}[{number}] goes back from {duration_text(latest)} to {duration_text(age)}")
        latest = age
        yield age, figure


def _point(measure: QosMeasure, given: Any, place: str) -> LifePoint:
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise UserError(f"{place} must be [time, value], such as ['10 s', {measure.example!r}], not {given!r}")
    age, figure = given
    if isinstance(age, bool) or not isinstance(age, str | int | float):
        raise UserError(f"{place}: a time is a duration such as '10 s' or a number of seconds, not {age!r}")
    try:
        return parse_duration(age), measure.value(figure)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
