"""Whether two lists of rows are the same, in whatever order, and numbers up to the error that they may have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests.engine.grammar.forms import Kind

from freshet.testing import compare
from freshet.testing.compare import Row, unmatched


def same(found: Sequence[Row], expected: Sequence[Row], kinds: Sequence[Kind]) -> bool:
    """Whether the rows are the same."""
    return len(found) == len(expected) and within(found, expected, kinds)


def within(found: Sequence[Row], expected: Sequence[Row], kinds: Sequence[Kind]) -> bool:
    """Whether every row found is an expected one of its own."""
    rough = [place for place, kind in enumerate(kinds) if kind in ("rough", "near")]

    def close(one: Row, other: Row) -> bool:
        return all(one[place] == other[place] or _is_near(one[place], other[place], kinds[place]) for place in rough)

    ours, theirs = ([tuple(map(plain, row)) for row in rows] for rows in (found, expected))
    alone, _ = unmatched(ours, theirs, rough, close)
    return not alone


def _is_near(found: Any, expected: Any, kind: Kind) -> bool:
    if not isinstance(found, int | float) or not isinstance(expected, int | float):
        return False  # NULL and NaN are near nothing
    if kind == "rough":
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    # Half a percent, and the rounding to a whole number where the argument is one.
    return bool(abs(found - expected) <= 0.005 * abs(expected) * (1 + 1e-9) + (0.5 if isinstance(expected, int) else 0))


def plain(value: Any) -> Any:
    """Times as microseconds, numbers so that NaN equals itself and -0 is 0."""
    return round(value.timestamp() * 1e6) if isinstance(value, datetime) else compare.plain(value)
