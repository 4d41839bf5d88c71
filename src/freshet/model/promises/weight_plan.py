"""Weights by the time of day (FAS §4.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from freshet.model.errors import UserError

DAY: Final = 86_400.0
"""Seconds of a day."""
_HOURS: Final = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")
_EXAMPLE: Final = '{"08:00-18:00" = 1.0, else = 0.2}'


@dataclass(frozen=True, slots=True)
class DayPart:
    """A part of the day with a weight: seconds since midnight; it may go past midnight."""

    begin: float
    end: float
    weight: float

    def holds(self, second: float) -> bool:
        """Whether a second of the day lies in it."""
        if self.begin < self.end:
            return self.begin <= second < self.end
        return second >= self.begin or second < self.end


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """The weight of a query over the day.

    Args:
        parts: Parts of the day with weights of their own; they do not overlap.
        other: The weight at all other times.

    >>> plan = WeightPlan.parse({"08:00-18:00": 1.0, "22:00-06:00": 0.1, "else": 0.2})
    >>> [plan.at(hour * 3600.0) for hour in (7, 8, 17.9, 18, 23, 3)]
    [0.2, 1.0, 1.0, 0.2, 0.1, 0.1]
    >>> WeightPlan.parse(0.5).at(0.0), WeightPlan.parse(0.5).is_constant
    (0.5, True)
    """

    parts: tuple[DayPart, ...]
    other: float

    @classmethod
    def parse(cls, given: Any) -> WeightPlan:
        """The plan that a user writes: a number, or a table by hours.

        >>> WeightPlan.parse({"8-18": 1.0, "else": 0.2})
        Traceback (most recent call last):
        freshet.model.errors.UserError: weight '8-18' is no time of day: write "08:00-18:00", or else
        >>> WeightPlan.parse({"08:00-18:00": 1.0})
        Traceback (most recent call last):
        freshet.model.errors.UserError: weight by the time of day also needs else: {"08:00-18:00" = 1.0, else = 0.2}
        """
        if isinstance(given, WeightPlan):
            return given
        if not isinstance(given, Mapping):
            return cls((), _weight(given))
        parts = tuple(_part(str(key), value) for key, value in given.items() if key != "else")
        if "else" not in given:
            raise UserError(f"weight by the time of day also needs else: {_EXAMPLE}")
        for place, part in enumerate(parts):
            if any(other.holds(part.begin) or part.holds(other.begin) for other in parts[:place]):
                raise UserError("weight has two times of day that overlap")
        return cls(parts, _weight(given["else"]))

    @property
    def is_constant(self) -> bool:
        """Whether it is the same all day."""
        return not self.parts

    def at(self, second: float) -> float:
        """The weight at a second of the day."""
        return next((part.weight for part in self.parts if part.holds(second)), self.other)

    def text(self) -> str:
        """For people.

        >>> WeightPlan.parse({"08:00-18:00": 1.0, "else": 0.2}).text()
        '1 from 08:00 to 18:00, else 0.2'
        """
        told = [f"{part.weight:g} from {_clock(part.begin)} to {_clock(part.end)}" for part in self.parts]
        return ", ".join([*told, f"else {self.other:g}" if told else f"{self.other:g}"])


@dataclass(frozen=True, slots=True)
class WeightRule:
    """Where the weight of a query comes from: a plan over the day, and whether its popularity counts, too."""

    plan: WeightPlan
    subscribers: bool = False


def _weight(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise UserError(f"weight {given!r} is outside (0, 1]: write a number, or one for each time of day: {_EXAMPLE}")
    if not 0.0 < given <= 1.0:
        raise UserError(f"weight {given!r} is outside (0, 1]")
    return float(given)


def _part(key: str, weight: Any) -> DayPart:
    found = _HOURS.fullmatch(key.strip())
    if found is None:
        raise UserError(f'weight {key!r} is no time of day: write "08:00-18:00", or else')
    begin, end = (_second(*found.group(place, place + 1)) for place in (1, 3))
    if begin % DAY == end % DAY:
        if end - begin == DAY:
            raise UserError(f"weight {key!r} is all day: write weight = {_weight(weight)!r}")
        raise UserError(f"weight {key!r} begins when it ends")
    return DayPart(begin % DAY, end, _weight(weight))


def _second(hour: str, minute: str) -> float:
    seconds = 3600.0 * int(hour) + 60.0 * int(minute)
    if int(minute) > 59 or seconds > DAY:
        raise UserError(f"weight {hour}:{minute} is no time of day")
    return seconds


def _clock(second: float) -> str:
    return f"{int(second // 3600):02d}:{int(second % 3600 // 60):02d}"
