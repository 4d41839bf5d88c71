"""What a query asks for, operator by operator as its text names them; :mod:`freshet.sql.lower.lower` says what runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from freshet.model.functions import OwnOperator
from freshet.model.operators import Filter, Project, Union


@dataclass(frozen=True, slots=True)
class Window:
    """A window over its input, such as ``[RANGE w SLIDE d]`` (in seconds) or ``[PARTITION BY k ROWS n]``.

    Without a size and a number of rows it has no end. ``time`` is the column that TUMBLE, HOP or window() name; None:
    the input's own time. Windows end at multiples of the slide since the epoch, ``offset`` seconds later.
    """

    name: str
    size: float | None = None
    slide: float | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    time: str | None = None
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class LogicalJoin:
    """Joins its inputs on a condition over its own columns; none: every row meets it.

    ``aliases`` are what the text calls the inputs, ``places`` where they are in it.
    """

    name: str
    kind: Literal["inner", "left"]
    condition: exp.Expr | None
    aliases: tuple[str, ...]
    places: tuple[exp.Expr, ...]

    def with_next(self, join: LogicalJoin) -> LogicalJoin:
        """This join and the next one of the same FROM, which joins one more input, in one."""
        conditions = [each for each in (self.condition, join.condition) if each is not None]
        condition = exp.and_(*conditions, copy=False) if conditions else None
        aliases, places = (*self.aliases, join.aliases[1]), (*self.places, join.places[1])
        return LogicalJoin(self.name, self.kind, condition, aliases, places)


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


@dataclass(frozen=True, slots=True)
class Applied:
    """An operator of the user's own over its input."""

    name: str
    function: OwnOperator
    arguments: tuple[str | int | float | bool, ...] = ()


Logical = Filter | Project | Union | Window | LogicalJoin | Aggregate | Distinct | SetOperation | Applied
