"""Queries in an abstract form, from which both the text for Freshet and the batch query for DuckDB are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["int", "float", "text", "time", "bool", "rough", "near"]
"""Type of a value. ``rough`` is a floating-point number up to its last digits, ``near`` a percentile up to its stated
error: neither can be compared or grouped by, so that they are only ever given out."""
Clock = Literal["event", "arrival", "none"]
SECOND = 1_000_000


@dataclass(frozen=True)
class Term:
    """An expression in both languages.

    Args:
        text: Freshet's.
        duck: DuckDB's.
        kind: Type of its value.
        column: The column that it is, where it is just that.
    """

    text: str
    duck: str
    kind: Kind
    column: str | None = None


@dataclass(frozen=True)
class Window:
    """A window; times in microseconds. With ``released`` it ends at releases, and goes by the arrival; ``edge`` names
    the edge at which levels may leave out some of its tuples."""

    form: Literal["range", "slide", "tumble", "hop", "window", "now", "rows", "partition", "unbounded"]
    size: int = 0
    slide: int = 0
    rows: int = 0
    by: str = ""
    released: bool = False
    edge: str = ""

    @property
    def with_each_tuple(self) -> bool:
        """Whether an aggregate over it gives a row for each tuple, not at boundaries."""
        return not self.released and self.form in ("range", "rows", "partition", "unbounded")

    @property
    def of_time(self) -> bool:
        """Whether it goes by time."""
        return self.form not in ("rows", "partition", "unbounded")


class Slide(NamedTuple):
    """Where boundaries are: at the multiples of a length, later by an offset."""

    length: int
    offset: int = 0


@dataclass(frozen=True)
class Shape:
    """What whoever reads a source has to know of it.

    Args:
        columns: Names and types.
        clock: What the time of its rows is.
        events: Columns that carry it.
        ordered: Whether its rows have one order, whatever the schedule.
        valid: Whether it says for how long its rows count.
        slide: The boundaries at which they count; None: they count at any time.
        outer: Whether rows without a partner are among them.
        ended: Those of the columns ``events`` that are ends of windows for which the rows stand.
        ends: Whether the time of its rows is such an end.
    """

    columns: tuple[tuple[str, Kind], ...]
    clock: Clock
    events: tuple[str, ...] = ()
    ordered: bool = False
    valid: bool = False
    slide: Slide | None = None
    outer: bool = False
    ended: frozenset[str] = frozenset()
    ends: bool = False

    @property
    def timed(self) -> bool:
        """Whether a window of time can stand behind it."""
        return self.clock != "none" or bool(self.events)


@dataclass(frozen=True)
class Named:
    """A stream or the output of a query."""

    name: str
    shape: Shape


@dataclass(frozen=True)
class Derived:
    """A sub-query in FROM."""

    body: Body


Source = Named | Derived


@dataclass(frozen=True)
class Member:
    """One of a FROM."""

    alias: str
    source: Source
    window: Window | None = None


@dataclass(frozen=True)
class Join:
    """How a member is joined with those before it; ``comma``: its condition stands in WHERE."""

    kind: Literal["inner", "left", "comma"]
    on: tuple[Term, ...]


@dataclass(frozen=True)
class Item:
    """A column of a SELECT; ``bound`` says that it is the start or the end of the window, and has no term."""

    name: str
    term: Term | None = None
    bound: Literal["start", "end"] | None = None

    @property
    def kind(self) -> Kind:
        return "time" if self.term is None else self.term.kind


@dataclass(frozen=True)
class Select:
    """A SELECT; ``keys`` is None where nothing is grouped."""

    items: tuple[Item, ...]
    members: tuple[Member, ...]
    joins: tuple[Join, ...] = ()
    where: tuple[Term, ...] = ()
    keys: tuple[Term, ...] | None = None
    having: Term | None = None
    distinct: bool = False
    changes: bool = False


@dataclass(frozen=True)
class Combined:
    """Two SELECTs with the same columns."""

    kind: Literal["UNION ALL", "UNION", "EXCEPT", "INTERSECT"]
    members: tuple[Select, Select]


Body = Select | Combined


@dataclass(frozen=True)
class Query:
    """A query of an application; with a period (microseconds) it answers at each multiple of it."""

    name: str
    body: Body
    period: int = 0
