"""Latency curves: what an answer is worth by how late it comes."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.model.errors import UserError
from freshet.model.units import duration_text, parse_duration

Floats = NDArray[np.float64]
CurvePoint = tuple[float, float]
"""(latency in seconds, utility)"""


class Curve:
    """A piecewise linear, non-increasing utility of latency (CAR §3.4.1, §4.2).

    The *critical points* are where its slope changes. A latency that is exactly at a point still belongs to the piece
    before it, so that a deadline that is just met is met. The *slope* is a magnitude; before the first and after the
    last critical point it is 0. The *slack* is the distance to the next critical point; after the last one there is
    nothing more to lose, so it is infinite. All three are found in O(log k).

    Args:
        points: (latency, utility) in the order of latency; two points of equal latency are a sudden drop. Before the
            first point the utility is that of the first, after the last that of the last.

    >>> tight = Curve([(0, 1), (0.01, 1), (0.03, 0)])
    >>> tight.utility(0.01), tight.utility(0.02), tight.utility(7)
    (1.0, 0.5, 0.0)
    >>> tight.slope(0.005), round(tight.slope(0.02), 6), tight.slope(0.04)
    (0.0, 50.0, 0.0)
    >>> round(tight.slack(0.004), 6), round(tight.slack(0.02), 6), tight.slack(0.04)
    (0.006, 0.01, inf)
    >>> tight.critical
    (0.01, 0.03)
    """

    __slots__ = ("_slopes", "_values", "critical", "points")

    def __init__(self, points: Sequence[CurvePoint]) -> None:
        self.points = _checked(points)
        # Piece i covers latencies up to critical[i], where the utility is _values[i]; what comes after is constant.
        pieces = _pieces(self.points)
        self.critical = tuple(end for end, _, _ in pieces)
        self._values = tuple(value for _, value, _ in pieces)
        self._slopes = tuple(slope for _, _, slope in pieces)

    @classmethod
    def parse(cls, points: Any) -> Curve:
        """The curve that a user writes: latencies as durations, utilities in [0, 1], so that curves compare.

        >>> Curve.parse([[0, 1.0], ["500ms", 1.0], ["2 s", 0]])
        Curve([(0.0, 1.0), (0.5, 1.0), (2.0, 0.0)])
        >>> Curve.parse([[0, 1], [1, 1.5]])
        Traceback (most recent call last):
        freshet.model.errors.UserError: utility 1.5 at latency 1 s is outside [0, 1]
        """
        if isinstance(points, Curve):
            points = points.points
        if isinstance(points, str) or not isinstance(points, Sequence):
            raise UserError(f'a latency curve is a list such as [[0, 1.0], ["500 ms", 1.0], [2, 0.0]], not {points!r}')
        return cls([_point(point) for point in points])

    @classmethod
    def for_query(cls, name: str, points: Any) -> Curve:
        """The same, but errors name the query.

        >>> Curve.for_query("q", [(0, 0.5), (1, 1)])
        Traceback (most recent call last):
        freshet.model.errors.UserError: query q: a latency curve never rises, but it does from 0.5 to 1 at 1 s
        """
        try:
            return cls.parse(points)
        except UserError as error:
            raise UserError(f"query {name}: {error}") from None

    @classmethod
    def deadline(cls, seconds: float, grace: float = 0.0) -> Curve:
        """Full utility up to a deadline, none from ``grace`` seconds after it.

        >>> Curve.deadline(2.0).utility(2.0), Curve.deadline(2.0).utility(2.1)
        (1.0, 0.0)
        """
        return cls([(0.0, 1.0), (seconds, 1.0), (seconds + grace, 0.0)])

    @classmethod
    def total(cls, curves: Iterable[tuple[Curve, float]]) -> Curve:
        """The sum of curves: what is at stake where several queries wait for one tuple, each with a delay of its own.

        Its slope is what all of them lose per second. It has all of their critical points, earlier by the delays.

        >>> both = Curve.total([(Curve([(0, 1), (4, 0)]), 1.0), (Curve.deadline(2.0), 0.0)])
        >>> both.utility(1.0), both.slope(1.0), both.utility(2.5)
        (1.5, 0.25, 0.125)
        """
        # Many queries share few curves.
        pairs = Counter(curves)
        places = {0.0, *(x - delay for curve, delay in pairs for x, _ in curve.points if x > delay)}
        points: list[CurvePoint] = []
        for place in sorted(places):
            # On both sides of a place: a sudden drop is two points.
            before = sum(count * curve.utility(place + delay) for (curve, delay), count in pairs.items())
            after = sum(count * curve._just_after(place + delay) for (curve, delay), count in pairs.items())
            points += [(place, before), (place, after)] if place and after < before else [(place, min(before, after))]
        return cls(points)

    def _just_after(self, latency: float) -> float:
        return min([self.utility(latency), *(utility for place, utility in self.points if place == latency)])

    @property
    def promise(self) -> float:
        """The latency up to which nothing is lost: where the curve begins to fall; infinite if it never does."""
        level = [latency for latency, utility in self.points if utility == self.points[0][1]]
        return level[-1] if len(level) < len(self.points) else math.inf

    def utility(self, latency: float) -> float:
        """What an answer of this latency is worth."""
        index = bisect_left(self.critical, latency)
        if index == len(self.critical):
            return self.points[-1][1]
        # From the piece's end backwards: at a critical point the value is exact.
        return self._values[index] + self._slopes[index] * (self.critical[index] - latency)

    def slope(self, latency: float) -> float:
        """Utility lost per second at this latency."""
        index = bisect_left(self.critical, latency)
        return self._slopes[index] if index < len(self._slopes) else 0.0

    def slack(self, latency: float) -> float:
        """Seconds to the next critical point."""
        index = bisect_left(self.critical, latency)
        return self.critical[index] - latency if index < len(self.critical) else math.inf

    def utilities(self, latencies: ArrayLike) -> Floats:
        """The utility of each latency.

        >>> Curve([(0, 1), (1, 0)]).utilities([0.0, 0.25, 3.0]).tolist()
        [1.0, 0.75, 0.0]
        """
        times = np.asarray(latencies, dtype=np.float64)
        index = np.searchsorted(self.critical, times, side="left")
        ends = np.append(self.critical, 0.0)[index]
        slopes = np.append(self._slopes, 0.0)[index]
        values = np.append(self._values, self.points[-1][1])[index]
        utilities: Floats = values + slopes * (ends - times)
        return utilities

    def pieces(self) -> tuple[tuple[float, float], ...]:
        """(end, slope) of each piece, in order; after the last end the slope is 0."""
        return tuple(zip(self.critical, self._slopes, strict=True))

    def text(self) -> str:
        """For people.

        >>> Curve([(0, 1), (0.5, 1), (2, 0)]).text()
        '1 at 0 s, 1 at 500 ms, 0 at 2 s'
        """
        return ", ".join(f"{utility:g} at {duration_text(latency)}" for latency, utility in self.points)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curve) and self.points == other.points

    def __hash__(self) -> int:
        return hash(self.points)

    def __repr__(self) -> str:
        return f"Curve({list(self.points)})"


def _point(point: Any) -> CurvePoint:
    """A latency and a utility as a user writes them."""
    if isinstance(point, str) or not isinstance(point, Sequence) or len(point) != 2:
        raise UserError(f'a point of a latency curve is [latency, utility], such as ["500 ms", 1.0], not {point!r}')
    latency, utility = point
    if isinstance(latency, bool) or not isinstance(latency, str | int | float):
        raise UserError(f"a latency is a duration such as '500 ms' or a number of seconds, not {latency!r}")
    if isinstance(utility, bool) or not isinstance(utility, int | float):
        raise UserError(f"a utility is a number from 0 to 1, not {utility!r}")
    seconds = parse_duration(latency) if isinstance(latency, str) else float(latency)
    if not 0.0 <= utility <= 1.0:
        raise UserError(f"utility {utility:g} at latency {duration_text(seconds)} is outside [0, 1]")
    return seconds, float(utility)


def _checked(points: Sequence[CurvePoint]) -> tuple[CurvePoint, ...]:
    checked = tuple((float(latency), float(utility)) for latency, utility in points)
    if not checked:
        raise UserError("a latency curve needs at least one point (latency, utility)")
    if not all(math.isfinite(number) for point in checked for number in point):
        raise UserError("a latency curve has finite latencies and utilities only")
    if checked[0][0] < 0.0:
        raise UserError(f"a latency curve begins at latency 0 or later, not at {checked[0][0]:g}")
    for (before, high), (latency, utility) in pairwise(checked):
        if latency < before:
            raise UserError(f"the points of a latency curve are in the order of latency, not {before:g}, {latency:g}")
        if latency == 0.0 and utility < high:
            raise UserError("a latency curve cannot drop at latency 0: nothing is answered sooner")
        if utility > high:
            raise UserError(f"a latency curve never rises, but it does from {high:g} to {utility:g} at {latency:g} s")
    return checked


def _pieces(points: tuple[CurvePoint, ...]) -> list[tuple[float, float, float]]:
    """(end, utility there, slope) of each piece; neighbours of equal slope are one piece."""
    pieces: list[tuple[float, float, float]] = []
    whole = ((0.0, points[0][1]), *points) if points[0][0] > 0.0 else points
    for (begin, high), (end, low) in pairwise(whole):
        if begin < end:
            slope = (high - low) / (end - begin)
            if pieces and pieces[-1][:2] == (begin, high) and math.isclose(slope, pieces[-1][2], rel_tol=1e-12):
                slope = pieces.pop()[2]
            pieces.append((end, low, slope))
    if pieces and pieces[-1][1:] == (points[-1][1], 0.0):
        # A last piece that is level only says what holds anyway.
        pieces.pop()
    return pieces
