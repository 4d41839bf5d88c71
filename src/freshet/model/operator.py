"""Operators (boxes): the nodes of a query graph. Expressions are Spark SQL text over the columns of the input.

Text is what both physical forms start from: Spark parses it for the catalyst form, the kernels compile
it for the vectorised form, and two operators are the same work exactly if their texts are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the tuples for which the predicate is true (one conjunct of a WHERE)."""

    name: str
    predicate: str


@dataclass(frozen=True, slots=True)
class Project:
    """Computes the columns ``(name, expression)``."""

    name: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Union:
    """UNION ALL of its inputs, which have the same columns."""

    name: str


@dataclass(frozen=True, slots=True)
class Window:
    """A window over its input, such as ``[RANGE w SLIDE d]``, ``[PARTITION BY k ROWS n]``, ``[NOW]``.

    ``time`` is the column that TUMBLE, HOP or window() name; None: the input's own time. Windows end at multiples of
    the slide since the epoch, ``offset`` seconds later.
    """

    name: str
    kind: Literal["range", "rows", "now", "unbounded"]
    size: float | None = None
    slide: float | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    time: str | None = None
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Join:
    """Joins its two inputs on a condition.

    ``left`` and ``right`` are the names under which the condition and the output columns
    ``(name, expression)`` call the inputs: ``left.k = right.k``.
    """

    name: str
    kind: Literal["inner", "left", "cross"]
    condition: str | None
    left: str = "left_input"
    right: str = "right_input"
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY with aggregates ``(name, expression)`` and an optional HAVING."""

    name: str
    keys: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    having: str | None = None


@dataclass(frozen=True, slots=True)
class Distinct:
    """Removes duplicates within a window."""

    name: str


@dataclass(frozen=True, slots=True)
class SetOperation:
    """EXCEPT or INTERSECT of its two inputs, which have the same columns, at every boundary of their windows."""

    name: str
    kind: Literal["except", "intersect"]


Operator = Filter | Project | Union | Window | Join | Aggregate | Distinct | SetOperation
