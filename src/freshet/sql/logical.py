"""What a query asks for, operator by operator as its text names them; :mod:`freshet.sql.lower` says what runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from freshet.model.operators import Filter, Project, Union


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


Logical = Filter | Project | Union | Window | Join | Aggregate | Distinct | SetOperation
