"""Units that run now, and the order in which what comes of them is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from freshet.model import Unit, UnitResult

CANCELLED: Final = "cancelled"
"""Why a unit runs again where nobody is at fault."""


@dataclass(slots=True)
class Line:
    """Units over successive trains of the same operators, which run side by side.

    Each begins where the one before ends, so they are committed in order. If one must run again, so must all behind
    it.

    >>> first, second = Unit("1", ()), Unit("2", ())
    >>> line = Line({"1": (first, 0.0), "2": (second, 0.0)})
    >>> line.results["2"] = UnitResult(second, 0.0, 1.0)
    >>> line.due()
    []
    >>> line.results["1"] = UnitResult(first, 0.0, 2.0)
    >>> [result.unit.id for result in line.due()]
    ['1', '2']
    """

    units: dict[str, tuple[Unit, float]]
    """In order, each with the time at which it was begun."""
    results: dict[str, UnitResult] = field(default_factory=dict)

    @property
    def last(self) -> Unit:
        """The unit with the newest train."""
        return next(reversed(self.units.values()))[0]

    @property
    def broken(self) -> bool:
        """Whether a unit must run again; those behind it have to wait for that."""
        return any(result.retry is not None for result in self.results.values())

    def due(self) -> list[UnitResult]:
        """What can be settled now, in order."""
        due: list[UnitResult] = []
        for number, unit in enumerate(self.units):
            result = self.results.get(unit)
            if result is None:
                break
            if result.retry is not None:
                # Not before all behind it are back: what waits is one range, from the cursor on.
                rest = list(self.units)[number:]
                if all(other in self.results for other in rest):
                    again = (self.results[other] for other in rest[1:])
                    due += [result, *(replace(other, retry=CANCELLED) for other in again)]
                break
            due.append(result)
        return due


class Lines:
    """All lines of units that are not settled yet."""

    def __init__(self) -> None:
        self._of: dict[str, Line] = {}

    def __len__(self) -> int:
        """Units that are not settled."""
        return len(self._of)

    def __iter__(self) -> Iterator[Line]:
        return iter({id(line): line for line in self._of.values()}.values())

    def begin(self, unit: Unit, now: float, line: Line | None = None) -> None:
        """A unit was begun, at the end of a line or by itself."""
        line = line or Line({})
        line.units[unit.id] = unit, now
        self._of[unit.id] = line

    def returned(self, result: UnitResult) -> list[str]:
        """A unit is back; returns running units that are of no use any more, because this one must run again."""
        line = self._of[result.unit.id]
        line.results[result.unit.id] = result
        if result.retry is None:
            return []
        order = list(line.units)
        behind = order[order.index(result.unit.id) + 1 :]
        return [unit for unit in behind if unit not in line.results]

    def due(self) -> list[UnitResult]:
        """What can be settled now; of each line in its order."""
        return [result for line in self for result in line.due()]

    def settled(self, unit: str) -> None:
        """A unit was settled."""
        line = self._of.pop(unit)
        del line.units[unit], line.results[unit]

    def where(self, wanted: Callable[[Unit], bool]) -> set[str]:
        """The ids of the units that are ``wanted``."""
        return {unit.id for line in self for unit, _ in line.units.values() if wanted(unit)}

    def running(self) -> dict[str, float]:
        """The units that still run, each with the time at which it was begun."""
        return {unit: begun for line in self for unit, (_, begun) in line.units.items() if unit not in line.results}
