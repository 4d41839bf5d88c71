"""Quality tables: what answers are worth by the share of their tuples that is kept (RT §4.3)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from freshet.model.errors import UserError

_PRESETS: Final = {"tolerant": 0.2573, "proportional": 1.0, "strict": 11.71}
"""Exponents: answers from a share k of the tuples are worth k to this power. They pass through the points of RT Fig. 6:
answers are worth 0.7 if 25, 70 and 97 % are kept."""
_ALIASES: Final = {"convex": "tolerant", "linear": "proportional", "concave": "strict"}
"""What RT calls them; mathematics has the first and the last one the other way round."""


class WrongTable(UserError):
    """A quality table names something that its query does not read."""


@dataclass(frozen=True, slots=True)
class QualityTable:
    """The worth of answers by the share kept.

    Args:
        exponent: Of a preset: a share k is worth k to this power.
        points: Instead of it: (share kept, worth), with straight lines between them. It begins at (0, 0).
        inputs: Instead of both: a table for each stream that the query reads. Its worth is that of the worst input
            (RT §5.2.2).

    >>> [round(QualityTable.parse(name).worth(kept), 3) for name, kept in (("tolerant", 0.25), ("strict", 0.97))]
    [0.7, 0.7]
    >>> QualityTable.parse([[0.5, 0.8], [1, 1]]).worth(0.75)
    0.9
    """

    exponent: float = 1.0
    points: tuple[tuple[float, float], ...] = ()
    inputs: tuple[tuple[str, QualityTable], ...] = ()

    @classmethod
    def parse(cls, given: Any) -> QualityTable:
        """The table that a user writes: the name of a preset, points, or one of them for each stream.

        >>> QualityTable.parse("linear") == QualityTable(), QualityTable.parse([(1, 1)]).points
        (True, ((0.0, 0.0), (1.0, 1.0)))
        >>> QualityTable.parse([(0.5, 0.9), (1, 0.8)])
        Traceback (most recent call last):
        freshet.model.errors.UserError: quality must end at [1, 1]: everything kept is worth 1
        >>> QualityTable.parse({"s": "strict", "t": "tolerant"}).of("s") == QualityTable.parse("strict")
        True
        """
        if isinstance(given, QualityTable):
            return given
        if isinstance(given, Mapping):
            return cls(inputs=_by_input(given))
        if isinstance(given, str):
            exponent = _PRESETS.get(_ALIASES.get(given, given))
            if exponent is None:
                raise UserError(f"quality must be {', '.join(_PRESETS)} or points [share kept, worth], not {given!r}")
            return cls(exponent)
        return cls(points=_checked(given))

    def of(self, stream: str) -> QualityTable:
        """The table of one of the streams that the query reads."""
        return dict(self.inputs).get(stream, PROPORTIONAL) if self.inputs else self

    def check(self, query: str, streams: Sequence[str]) -> None:
        """Refuses tables of streams that a query does not read.

        >>> QualityTable.parse({"t": "strict"}).check("q", ["s"])
        Traceback (most recent call last):
        freshet.model.promises.quality_table.WrongTable: query q: quality names t, but the query reads s
        """
        for name, _ in self.inputs:
            if name not in streams:
                raise WrongTable(f"query {query}: quality names {name}, but the query reads {', '.join(streams)}")

    def worth(self, kept: float) -> float:
        """What answers are worth if this share of the tuples is kept."""
        if self.inputs:
            return min(table.worth(kept) for _, table in self.inputs)
        if not self.points:
            return float(kept**self.exponent)
        place = min(bisect_right(self.points, kept, key=lambda point: point[0]), len(self.points) - 1)
        (low, before), (high, after) = self.points[place - 1], self.points[place]
        return before + (after - before) * (kept - low) / (high - low)

    def kept(self, worth: float) -> float:
        """The least share of the tuples with which answers are worth that much (RT §4.3: 1 minus the drop ratio).

        >>> [round(QualityTable.parse(name).kept(0.7), 2) for name in ("tolerant", "proportional", "strict")]
        [0.25, 0.7, 0.97]
        >>> QualityTable.parse([[0.5, 0.8], [1, 1]]).kept(0.9)
        0.75
        """
        if self.inputs:
            return max(table.kept(worth) for _, table in self.inputs)
        if worth >= 1.0 and not self.points:
            return 1.0
        if not self.points:
            return float(max(0.0, worth) ** (1.0 / self.exponent))
        place = bisect_left(self.points, min(worth, 1.0), key=lambda point: point[1])
        if place == 0:
            return 0.0
        (low, before), (high, after) = self.points[place - 1], self.points[place]
        return low + (high - low) * (min(worth, 1.0) - before) / (after - before)

    def text(self) -> str:
        """The table in words.

        >>> QualityTable.parse("convex").text(), QualityTable.parse({"s": [[0.5, 0.9], [1, 1]]}).text()
        ('tolerant', 's: [0, 0] [0.5, 0.9] [1, 1]')
        """
        if self.inputs:
            return ", ".join(f"{name}: {table.text()}" for name, table in self.inputs)
        if self.points:
            return " ".join(f"[{kept:g}, {worth:g}]" for kept, worth in self.points)
        names = {exponent: name for name, exponent in _PRESETS.items()}
        return names.get(self.exponent, f"kept^{self.exponent:g}")


def _by_input(given: Mapping[Any, Any]) -> tuple[tuple[str, QualityTable], ...]:
    if not given or any(isinstance(each, Mapping) for each in given.values()):
        raise UserError("quality by stream gives each stream a preset or points, such as {s = 'tolerant'}")
    return tuple((str(name), QualityTable.parse(each)) for name, each in given.items())


def _checked(given: Any) -> tuple[tuple[float, float], ...]:
    if not isinstance(given, Sequence):
        raise UserError(f"quality must be a preset or a list such as [[0.5, 0.8], [1, 1]], not {given!r}")
    try:
        points = [(float(kept), float(worth)) for kept, worth in given]
    except (TypeError, ValueError):
        raise UserError(f"quality: each point is [share kept, worth], two numbers, not {given!r}") from None
    points = points if points and points[0][0] == 0.0 else [(0.0, 0.0), *points]
    if points[-1] != (1.0, 1.0):
        raise UserError("quality must end at [1, 1]: everything kept is worth 1")
    for (low, before), (high, after) in pairwise(points):
        if not (low < high and 0.0 <= before <= after):
            raise UserError(f"quality must rise: [{high:g}, {after:g}] comes after [{low:g}, {before:g}]")
    return tuple(points)


PROPORTIONAL: Final = QualityTable()
"""Worth as much as is kept."""
