"""Measures: what can be expected of a query, in which unit, and which way is better."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from freshet.model.errors import UserError
from freshet.model.units import bytes_text, duration_text, parse_bytes, parse_duration

_RATE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:rows|tuples)\s*/\s*s\s*")


@dataclass(frozen=True, slots=True)
class QosMeasure:
    """A measure of quality of service (MAV §1): one figure of a query that is held against its expectation.

    Args:
        name: Names it in ``expect`` and in the rows of a decision table.
        better: Whether low or high figures are good.
        example: A value as users write it.
        parse: The figure that a user's text or number means; it raises :class:`UserError` for others.
        text: A figure for people.

    >>> MEASURES["latency"].meets(observed=1.5, expected=2.0), MEASURES["throughput"].meets(1.5, 2.0)
    (True, False)
    """

    name: str
    better: Literal["low", "high"]
    example: str
    parse: Callable[[Any], float]
    text: Callable[[float], str]

    def meets(self, observed: float | None, expected: float) -> bool:
        """Whether a figure is as expected; nothing observed means that nothing is wrong."""
        if observed is None:
            return True
        return observed <= expected if self.better == "low" else observed >= expected

    def reduction(self, observed: float | None, expected: float) -> float:
        """Share by which a figure is better than expected, in [0, 1] (MAV Eq. 2).

        As printed it rises above 1 for throughput, and falls below 0 if the expectation is about to loosen.

        >>> MEASURES["latency"].reduction(1.0, 2.0), MEASURES["throughput"].reduction(200.0, 100.0)
        (0.5, 0.5)
        >>> MEASURES["latency"].reduction(1.95, 1.9), MEASURES["throughput"].reduction(0.0, 100.0)
        (0.0, 0.0)
        """
        if observed is None:
            return 1.0
        if self.better == "low":
            return min(1.0, max(0.0, 1.0 - observed / expected))
        return max(0.0, 1.0 - expected / observed) if observed else 0.0

    def excess(self, observed: float | None, expected: float) -> float:
        """By which factor a figure misses its expectation: above 1 if it does.

        >>> MEASURES["latency"].excess(3.0, 2.0), MEASURES["throughput"].excess(50.0, 100.0)
        (1.5, 2.0)
        """
        if observed is None:
            return 0.0
        if self.better == "low":
            return observed / expected
        return expected / observed if observed else math.inf

    def value(self, given: Any) -> float:
        """The expected figure that a user writes: above 0 and finite.

        >>> MEASURES["latency"].value("500 ms"), MEASURES["memory"].value("1 MB"), MEASURES["throughput"].value(200)
        (0.5, 1000000.0, 200.0)
        >>> MEASURES["memory"].value(0)
        Traceback (most recent call last):
        freshet.model.errors.UserError: a memory of 0 cannot be expected: use a value above 0, such as '10 MB'
        >>> MEASURES["throughput"].value("fast")
        Traceback (most recent call last):
        freshet.model.errors.UserError: 'fast' is not a throughput: use for example '200 rows/s'
        """
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise UserError(f"a {self.name} is a value such as {self.example!r}, not {given!r}")
        try:
            figure = float(self.parse(given))
        except OverflowError:
            figure = math.inf
        if not math.isfinite(figure):
            raise UserError(f"{given!r} is not a {self.name}: use for example {self.example!r}")
        if figure <= 0.0:
            shown = f"{given:g}" if isinstance(given, int | float) else given
            raise UserError(
                f"a {self.name} of {shown} cannot be expected: use a value above 0, such as {self.example!r}"
            )
        return figure


def parse_throughput(given: str | float) -> float:
    """Tuples per second of a throughput such as ``"200 rows/s"``; a bare number is tuples per second.

    >>> parse_throughput("200 rows/s"), parse_throughput(7)
    (200.0, 7.0)
    """
    if isinstance(given, str):
        match = _RATE.fullmatch(given)
        if match is None:
            raise UserError(f"{given!r} is not a throughput: use for example '200 rows/s'")
        return float(match.group(1))
    return float(given)


def throughput_text(figure: float) -> str:
    """A throughput for people.

    >>> throughput_text(0.5), throughput_text(12.345), throughput_text(1089.6), throughput_text(2e6)
    ('0.5 rows/s', '12.3 rows/s', '1090 rows/s', '2000000 rows/s')
    """
    return f"{figure:.0f} rows/s" if figure >= 1000.0 else f"{figure:.3g} rows/s"


def _memory(given: str | float) -> float:
    return given if isinstance(given, float) else parse_bytes(given)


MEASURES: Final = {
    measure.name: measure
    for measure in (
        QosMeasure("latency", "low", "2 s", parse_duration, duration_text),
        QosMeasure("memory", "low", "10 MB", _memory, bytes_text),
        QosMeasure("throughput", "high", "200 rows/s", parse_throughput, throughput_text),
    )
}
"""The measures by name. A further meter becomes a measure by a line here and a figure of its name in
:class:`freshet.quality.optimizer.IntervalFigures`."""
