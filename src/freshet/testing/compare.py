"""Compares two lists of rows, in whatever order, with floating-point numbers up to their rounding."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from freshet.model.messages import counted

Row = tuple[Any, ...]
Close = Callable[[Row, Row], bool]

TOLERANCE: Final = 1e-9
"""How far sums of floating-point numbers may differ, relative to their size: their rounding depends on the order."""
_MOST_SHOWN: Final = 10


class _Missing:
    def __repr__(self) -> str:
        return "(no such column)"


_MISSING: Final = _Missing()


def assert_same(
    found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]], *, tolerance: float = TOLERANCE
) -> None:
    """Raises an AssertionError that shows the difference, if there is one; see :func:`difference`."""
    told = difference(found, expected, tolerance=tolerance)
    if told is not None:
        raise AssertionError(told)


def difference(
    found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]], *, tolerance: float = TOLERANCE
) -> str | None:
    """How rows differ from the expected ones; None if they are the same.

    The order of the rows does not matter, but the number of times that each occurs does. NaN equals NaN, and -0.0
    equals 0.0.

    Args:
        found: The rows that were found.
        expected: The rows that were expected.
        tolerance: How far numbers may differ in columns that have floating-point numbers.

    >>> difference([{"k": "a", "x": 0.1 + 0.2}], [{"k": "a", "x": 0.3}])
    >>> print(difference([{"k": "a", "n": 2}, {"k": "b", "n": 1}], [{"k": "b", "n": 1}, {"k": "a", "n": 3}]))
    2 rows, expected 2; 1 the same
      missing:    {'k': 'a', 'n': 3}
      unexpected: {'k': 'a', 'n': 2}
    """
    names = list(dict.fromkeys(name for rows in (expected, found) for row in rows for name in row))
    ours, theirs = (
        [tuple(plain(row.get(name, _MISSING)) for name in names) for row in rows] for rows in (found, expected)
    )
    rough = [place for place in range(len(names)) if any(isinstance(row[place], float) for row in (*ours, *theirs))]

    def close(one: Row, other: Row) -> bool:
        return all(one[place] == other[place] or _near(one[place], other[place], tolerance) for place in rough)

    unexpected, missing = unmatched(ours, theirs, rough, close)
    if not unexpected and not missing:
        return None
    lines = [f"{counted(len(found), 'row')}, expected {len(expected)}; {len(found) - len(unexpected)} the same"]
    lines += _shown("missing:   ", [expected[place] for place in missing])
    lines += _shown("unexpected:", [found[place] for place in unexpected])
    return "\n".join(lines)


def _near(one: Any, other: Any, tolerance: float) -> bool:
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return numbers and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def _shown(word: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"  {word} {dict(row)}" for row in rows[:_MOST_SHOWN]]
    return lines + ([f"  {word} and {len(rows) - _MOST_SHOWN} more"] if len(rows) > _MOST_SHOWN else [])


def plain(value: Any) -> Any:
    """A value that can be compared and counted: NaN equals itself, and arrays and structs are hashable.

    >>> plain(float("nan")), plain([1, -0.0])
    ('NaN', (1, 0.0))
    """
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Mapping):
        return tuple((key, plain(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value


def unmatched(
    found: Sequence[Row], expected: Sequence[Row], rough: Collection[int], close: Close
) -> tuple[list[int], list[int]]:
    """The places of rows on both sides that have no partner on the other.

    Args:
        found: Plain rows.
        expected: Plain rows.
        rough: Columns in which partners need not be equal.
        close: Whether two rows are alike in these columns.

    >>> unmatched([("a", 1.0), ("b", 2.0)], [("b", 2.1)], [1], lambda one, other: abs(one[1] - other[1]) < 0.5)
    ([0], [])
    """
    groups: dict[Row, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((found, expected)):
        for number, row in enumerate(rows):
            groups[tuple(each for place, each in enumerate(row) if place not in rough)][side].append(number)
    alone: tuple[list[int], list[int]] = [], []
    for ours, theirs in groups.values():
        pairs = _pairs([found[place] for place in ours], [expected[place] for place in theirs], close)
        alone[0].extend(place for number, place in enumerate(ours) if number not in pairs.values())
        alone[1].extend(place for number, place in enumerate(theirs) if number not in pairs)
    return sorted(alone[0]), sorted(alone[1])


def _pairs(found: Sequence[Row], expected: Sequence[Row], close: Close) -> dict[int, int]:
    """As many pairs of rows as possible, by augmenting paths: maps each paired expected row to the one found."""
    equal: dict[Row, list[int]] = defaultdict(list)
    for number, row in enumerate(expected):
        equal[row].append(number)
    taken: dict[int, int] = {}
    rest = []
    for number, row in enumerate(found):
        if equal.get(row):
            taken[equal[row].pop()] = number
        else:
            rest.append(number)

    def place(number: int, seen: set[int]) -> bool:
        for other, row in enumerate(expected):
            if other not in seen and close(found[number], row):
                seen.add(other)
                if other not in taken or place(taken[other], seen):
                    taken[other] = number
                    return True
        return False

    for number in rest:
        place(number, set())
    return taken
