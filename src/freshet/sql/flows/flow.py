"""What all flows have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeVar

import pyarrow as pa
from sqlglot import exp

from freshet.model.operators import WINDOW_END, WINDOW_START, Filter, Operator, Project
from freshet.model.scheduling.instance import InputWindow
from freshet.sql.flows.wiring import Wiring
from freshet.sql.parse.errors import SqlError, fail
from freshet.sql.parse.limits import as_filters
from freshet.sql.parse.text import column, to_sql
from freshet.sql.parse.trees import column_names, inline, plus

TIME: Final = "__time"
"""Hidden column: the time of a tuple, a timestamp."""
PASSES: Final = "__passes"
"""Hidden column: whether a tuple of a window of rows passes the filters behind the window."""
MEMBER: Final = "__member"
"""Hidden column: number of the member of a set operation that a tuple is from."""

BOUNDS: Final = {WINDOW_START: WINDOW_START, WINDOW_END: WINDOW_END}
"""The hidden columns of start and end of a window, as :attr:`Traits.bounds` has them."""

_T = TypeVar("_T")
Order = tuple[str, ...] | None
"""See :attr:`Traits.order`."""
TimeKind = Literal["arrival", "event", "none"]
"""What a tuple's time is: its arrival, the hidden column :data:`TIME`, or nothing that is known."""


@dataclass(frozen=True, slots=True)
class Span:
    """How long the tuples of a flow count.

    Args:
        size: Microseconds for which a tuple is valid, or their maximum; None: without end, or by rows.
        slide: Microseconds between the boundaries at which answers are given; None: with each tuple.
        offset: Microseconds from the multiples of the slide to the boundaries.
        rows: Number of tuples, for a window of rows.
        partitions: Number of columns by which a window of rows is partitioned.
        width: Microseconds from the start to the end of the window, if that is one number.
        interval: Whether the hidden columns FROM and UNTIL say how long each tuple is valid, not its time and the size.
        outer: Whether it has tuples without a partner.
        problem: Why nothing can be computed over it.
    """

    size: int | None = None
    slide: int | None = None
    rows: int | None = None
    partitions: int = 0
    width: int | None = None
    interval: bool = False
    outer: bool = False
    problem: str | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a flow.

    Args:
        names: Its columns.
        clock: What the time of its tuples is.
        span: How long they count; None: there is no window.
        events: Columns that carry event time (lower case), hidden ones too; the value tells whether it is the end of
            the window that the tuple stands for.
        bounds: Columns (lower case) that are the start or the end of the window, and which of the two.
        order: Columns (lower case): tuples that are equal in all of them come in the order of the log, whatever the
            schedule. Empty: all tuples do. None: there is no such order.
        marked: Whether filters follow its window of rows, so that :data:`PASSES` tells which tuples pass.
        table: The table whose rows these are; None: they are tuples of streams.
        untimed: The operator of the user's own that took the time away; None: none did.
        ordered: Columns (lower case) that its tuples are ordered by, nearly, with their types. All have the same value.
    """

    names: tuple[str, ...]
    clock: TimeKind
    span: Span | None = None
    events: Mapping[str, bool] = field(default_factory=dict)
    bounds: Mapping[str, str] = field(default_factory=dict)
    order: Order = ()
    marked: bool = False
    table: str | None = None
    untimed: str | None = None
    ordered: Mapping[str, pa.DataType] = field(default_factory=dict)

    def renamed(self, names: tuple[str, ...], own: Mapping[str, str]) -> Traits:
        """The traits of a flow with other columns; ``own[name]`` is the column here that a name stands for."""

        def kept(known: Mapping[str, _T]) -> dict[str, _T]:
            hidden = {name: value for name, value in known.items() if name.startswith("__")}
            return {name: known[column] for name, column in own.items() if column in known} | hidden

        events, bounds, ordered = kept(self.events), kept(self.bounds), kept(self.ordered)
        order = renamed(self.order, own)
        return replace(self, names=names, events=events, bounds=bounds, order=order, ordered=ordered)


@dataclass(frozen=True, slots=True)
class Want:
    """What the reader of a flow asks for.

    Args:
        name: Name of the projection that computes the columns.
        columns: ``(name, expression)`` over the flow's columns.
        filters: ``(name, predicate)`` over the flow's columns.
        time: Column of the flow whose times the reader goes by; None: the flow's own time.
        window: What an instance of a periodic query sees of the stream; None: there is no such window.
        by_key: Whether the reader goes by the ordered key of the stream instead of its time.
    """

    name: str
    columns: tuple[tuple[str, exp.Expr], ...]
    filters: tuple[tuple[str, exp.Expr], ...] = ()
    time: str | None = None
    window: InputWindow | None = None
    by_key: bool = False

    def inlined(self, values: Mapping[str, exp.Expr]) -> Want:
        """The same in terms of what the columns are made of."""
        time = values.get(self.time.lower()) if self.time is not None else None
        return replace(
            self,
            columns=tuple((name, inline(value, values)) for name, value in self.columns),
            filters=tuple((name, inline(value, values)) for name, value in self.filters),
            time=self.time if time is None else next(time.find_all(exp.Column)).name,
        )

    def reads(self) -> set[str]:
        """Names in lower case of the columns that it reads."""
        trees = (value for _, value in (*self.columns, *self.filters))
        return {name for tree in trees for name in column_names(tree)}

    def after(self, wiring: Wiring, source: str) -> str:
        """Puts its filters and its projection behind an operator or a stream; returns the last of them."""
        conditions = as_filters([value for _, value in self.filters])
        # If several conditions share the last filter, the first of them names it.
        operators: list[Operator] = [
            Filter(name, to_sql(value)) for (name, _), value in zip(self.filters, conditions, strict=False)
        ]
        operators.append(Project(self.name, tuple((name, to_sql(value)) for name, value in self.columns)))
        for number, operator in enumerate(operators):
            source = wiring.add(operator, source)
            if not number and self.window is not None:
                wiring.windows[source] = self.window
        return source


class Inputs:
    """The projection in front of a fold: collects the columns that it reads; equal expressions become one column.

    A column keeps its name, anything else is called ``__c1``, ``__c2`` and so on.
    """

    def __init__(self) -> None:
        self._columns: dict[str, tuple[str, exp.Expr]] = {}

    @property
    def columns(self) -> tuple[tuple[str, exp.Expr], ...]:
        """``(name, expression)`` in the order in which they were asked for."""
        return tuple(self._columns.values())

    def name(self, value: exp.Expr) -> str:
        """The name of the column with this value."""
        text = to_sql(value).lower() if isinstance(value, exp.Column) else to_sql(value)
        if text not in self._columns:
            computed = sum(1 for name, each in self._columns.values() if not isinstance(each, exp.Column))
            name = value.name if isinstance(value, exp.Column) else f"__c{computed + 1}"
            self._columns[text] = (name, value.copy())
        return self._columns[text][0]

    def copy(self) -> Inputs:
        """Another one with the same columns."""
        other = Inputs()
        other._columns = dict(self._columns)
        return other

    def add(self, *names: str) -> None:
        """Takes hidden columns in under their own names."""
        for name in names:
            self.name(column(name))


class Flow(ABC):
    """A part of a query graph: what is known of it, and its place in the text, for errors."""

    def __init__(self, traits: Traits, place: exp.Expr | None = None) -> None:
        self.traits = traits
        self.place = place

    @abstractmethod
    def emit(self, want: Want, wiring: Wiring) -> str:
        """Adds the operators that give what a reader wants; returns the last of them."""

    def lag(self, name: str) -> int:
        """Maximum number of microseconds from the event time in a column to the time at which a tuple begins to count.

        For a pair that is FROM: the time of the later of its tuples.
        """
        span = self.traits.span
        return 0 if span is None or span.size is None else span.size

    def wrong(self, problem: str) -> SqlError:
        """An error at the place of this part; the caller raises it."""
        return fail(problem, self.place)


def refuse_table(flow: Flow, instead: str, place: exp.Expr | None) -> None:
    """Refuses a table where only a stream is allowed."""
    if flow.traits.table is not None:
        raise fail(f"{flow.traits.table} is a table: {instead.format(flow.traits.table)}", place)


def renamed(order: Order, names: Mapping[str, str]) -> Order:
    """The order of a flow that gives out some columns of another, as ``names[own] = column of the other``."""
    own = {column: name for name, column in names.items()}
    return tuple(own[column] for column in order) if order is not None and set(order) <= own.keys() else None


def boundary(microseconds: exp.Expr, span: Span) -> exp.Expr:
    """The last boundary at or before a time; a true floor, also before the epoch."""
    slide = span.slide
    assert slide is not None
    since = plus(microseconds, -span.offset) if span.offset else microseconds.copy()
    since = exp.Paren(this=since) if isinstance(since, exp.Binary) else since
    width = exp.Literal.number(slide)
    remainder = exp.Mod(this=since, expression=width)
    positive = exp.Paren(this=exp.Add(this=remainder, expression=width.copy()))
    floor = exp.Mod(this=positive, expression=width.copy())
    return exp.Sub(this=microseconds.copy(), expression=exp.Paren(this=floor))
