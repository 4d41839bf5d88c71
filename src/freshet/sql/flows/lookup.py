"""Joins with tables: every tuple with the rows of its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from freshet.model.operators import Filter, Lookup, Project
from freshet.model.schema import ARRIVAL, type_text
from freshet.sql.errors import fail
from freshet.sql.flows.condition import Named, Port, Sides
from freshet.sql.flows.flow import Flow, Span, Traits, Want, hidden, renamed
from freshet.sql.flows.inputs import Inputs
from freshet.sql.flows.wiring import Wiring
from freshet.sql.inline import column_names, inline
from freshet.sql.logical import Join
from freshet.sql.text import column, parse_expression, to_sql

_ROWS = (
    "a window of rows counts tuples, and a join with a table may make several of one, or none: join in a sub-query and "
    "put the window behind it, as in FROM (SELECT ... FROM s JOIN {}) [ROWS 10]"
)


class LookupFlow(Flow):
    """A join of a flow with a table. What is known of the flow stays true: its times, its windows, its order.

    Args:
        join: The operator.
        condition: Its ON over the joined columns.
        columns: Names and types of the joined columns, those of the left input first.
        inputs: The two inputs; one of them is a table.
        schema: Columns of the table.
        sides: Where the inputs stand in the text.
    """

    def __init__(
        self,
        join: Join,
        condition: exp.Expr | None,
        columns: Sequence[tuple[str, pa.DataType]],
        inputs: tuple[Flow, Flow],
        schema: Sequence[tuple[str, pa.DataType]],
        sides: tuple[exp.Expr | None, exp.Expr | None],
    ) -> None:
        tables = [side.traits.table for side in inputs]
        stream: Port = 0 if tables[0] is None else 1
        table = tables[1 - stream]
        if table is None or tables[stream] is not None:
            raise fail(f"{tables[0]} and {tables[1]} are tables: join the stream with one of them first", sides[1])
        if join.kind == "left" and stream == 1:
            raise fail(
                f"{table} is a table, and which of its rows no tuple meets is never known: put the stream first, "
                f"as in FROM {join.right} LEFT JOIN {join.left}",
                sides[0],
            )
        self._child, self._rows = inputs[stream], inputs[1 - stream]
        super().__init__(self._child.traits, sides[1 - stream])
        self._name, self._table, self._stream = join.name, table, stream
        self._kind: Literal["inner", "left"] = "left" if join.kind == "left" else "inner"
        self._schema = {name.lower(): (name, type_text(kind)) for name, kind in schema}
        self._sides = Sides(columns, (inputs[0].traits.names, inputs[1].traits.names), (stream,))
        outer: Port | None = 0 if self._kind == "left" else None
        self._condition = self._sides.taken_apart(join.name, condition, outer, sides[1], pairs=True)
        self.traits = self._joined(tuple(name for name, _ in columns))

    def _joined(self, names: tuple[str, ...]) -> Traits:
        traits = self._child.traits
        own = {joined: name.lower() for joined, (port, name) in self._sides.places.items() if port == self._stream}
        bounds = {joined: traits.bounds[name] for joined, name in own.items() if name in traits.bounds}
        by_rows = traits.span is not None and traits.span.rows is not None
        return replace(
            traits,
            names=names,
            span=Span(problem=_ROWS.format(self._table)) if by_rows else traits.span,
            events={joined: traits.events[name] for joined, name in own.items() if name in traits.events}
            | {name: ends for name, ends in traits.events.items() if name.startswith("__")},
            bounds=bounds | {name: which for name, which in traits.bounds.items() if name.startswith("__")},
            order=renamed(traits.order, own),
            marked=False,
        )

    def lag(self, name: str) -> int:
        _, own = self._sides.places.get(name.lower(), (self._stream, name))
        return self._child.lag(own)

    def emit(self, want: Want, wiring: Wiring) -> str:
        pushed = list(self._condition.own[self._stream])
        # What the table alone decides is seen behind the join: it runs there in either form. Only what makes a tuple of
        # a LEFT JOIN lonely must be known before.
        outer = self._kind == "left"
        before = self._condition.own[1 - self._stream] if outer else ()
        kept = [] if outer else [*self._condition.both, *self._condition.own[1 - self._stream]]
        for named in want.filters:
            (pushed if self._sides.of(named[1]) == {self._stream} else kept).append(named)
        return self._emit(replace(want, filters=tuple(kept)), pushed, before, wiring)

    def _emit(self, behind: Want, pushed: Sequence[Named], before: Sequence[Named], wiring: Wiring) -> str:
        own = {joined: column(name) for joined, (_, name) in self._sides.places.items()}
        tuples, rows = Inputs(), Inputs()
        keys = [(pair[self._stream], pair[1 - self._stream]) for pair in self._condition.keys]
        conditions = [predicate for _, predicate in self._condition.both] if self._kind == "left" else []
        asked = behind.reads() | {name for predicate in conditions for name in column_names(predicate)}
        columns = self._columns(asked, tuples, rows)
        named = (
            tuple(tuples.name(inline(one, own)) for one, _ in keys),
            tuple(rows.name(inline(two, own)) for _, two in keys),
        )
        operators = self._table_operators(rows, before, own)
        lookup = Lookup(
            self._name, self._table, self._read(operators), operators, self._kind, named, columns,
            tuple(map(to_sql, conditions)),
        )  # fmt: skip
        filters = tuple((name, inline(predicate, own)) for name, predicate in pushed)
        wanted = Want(f"{self._name}.input", tuples.columns, filters, self._time(behind.time))
        return behind.after(wiring, wiring.add(lookup, self._child.emit(wanted, wiring)))

    def _columns(self, asked: set[str], tuples: Inputs, rows: Inputs) -> tuple[tuple[str, Literal[0, 1], str], ...]:
        """What goes on from the join: joined columns, and what is hidden in the tuples."""
        columns: list[tuple[str, Literal[0, 1], str]] = []
        for name, (port, place) in zip(self.traits.names, self._sides.places.values(), strict=True):
            if name.lower() in asked and port == self._stream:
                columns.append((name, 0, tuples.name(column(place))))
            elif name.lower() in asked:
                columns.append((name, 1, rows.name(column(place))))
        secret = sorted(asked - self._sides.places.keys() - {ARRIVAL})
        return (*columns, *((name, 0, tuples.name(hidden(name))) for name in secret))

    def _time(self, time: str | None) -> str | None:
        place = None if time is None else self._sides.places.get(time.lower())
        return time if place is None else place[1]

    def _table_operators(
        self, rows: Inputs, before: Sequence[Named], own: Mapping[str, exp.Expr]
    ) -> tuple[Filter | Project, ...]:
        filters = tuple((name, inline(predicate, own)) for name, predicate in before)
        columns = rows.columns or (("__row", exp.Literal.number(1)),)
        apart = Wiring()
        self._rows.emit(Want(f"{self._name}.table", columns, filters), apart)
        operators = tuple(each for each in apart.operators.values() if isinstance(each, Filter | Project))
        assert len(operators) == len(apart.operators), "a table goes through filters and projections only"
        return operators

    def _read(self, operators: Sequence[Filter | Project]) -> tuple[tuple[str, str], ...]:
        """The columns of the table that operators read."""
        texts = [
            text
            for each in operators
            for text in ([each.predicate] if isinstance(each, Filter) else [text for _, text in each.columns])
        ]
        names = {name for text in texts for name in column_names(parse_expression(text))}
        read = tuple(field for name, field in self._schema.items() if name in names)
        # A table is known by a column at least.
        return read or tuple(self._schema.values())[:1]
