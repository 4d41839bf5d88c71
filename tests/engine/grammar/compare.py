"""Whether two lists of rows are the same, in whatever order, and numbers up to the error that they may have."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests.engine.grammar.forms import Kind

Row = tuple[Any, ...]


def same(found: Sequence[Row], expected: Sequence[Row], kinds: Sequence[Kind]) -> bool:
    """Whether the rows are the same."""
    return len(found) == len(expected) and within(found, expected, kinds)


def within(found: Sequence[Row], expected: Sequence[Row], kinds: Sequence[Kind]) -> bool:
    """Whether every row found is an expected one of its own."""
    groups: dict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((found, expected)):
        for row in rows:
            exact = tuple(plain(each) for each, kind in zip(row, kinds, strict=True) if kind not in ("rough", "near"))
            groups[exact][side].append(row)
    return all(len(some) <= len(others) and _match(some, others, kinds) for some, others in groups.values())


def _match(some: list[Row], others: list[Row], kinds: Sequence[Kind]) -> bool:
    """A partner for each row of those whose exact columns are equal, by augmenting paths."""
    if not {"rough", "near"} & set(kinds):
        return True
    taken: dict[int, int] = {}

    def place(number: int, seen: set[int]) -> bool:
        for other, row in enumerate(others):
            if other not in seen and _close(some[number], row, kinds):
                seen.add(other)
                if other not in taken or place(taken[other], seen):
                    taken[other] = number
                    return True
        return False

    return all(place(number, set()) for number in range(len(some)))


def _close(one: Row, other: Row, kinds: Sequence[Kind]) -> bool:
    return all(
        plain(a) == plain(b) or (kind in ("rough", "near") and _is_near(a, b, kind))
        for a, b, kind in zip(one, other, kinds, strict=True)
    )


def _is_near(found: Any, expected: Any, kind: Kind) -> bool:
    if found is None or expected is None:
        return False
    if kind == "rough":
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    # Half a percent, and the rounding to a whole number where the argument is one.
    return bool(abs(found - expected) <= 0.005 * abs(expected) * (1 + 1e-9) + (0.5 if isinstance(expected, int) else 0))


def plain(value: Any) -> Any:
    """Times as microseconds, numbers so that NaN equals itself and -0 is 0."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1e6)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value
