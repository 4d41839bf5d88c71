"""Joins with tables: every tuple with the rows of its version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from freshet.model.operators import Lookup, Operator
from freshet.model.schema import ARRIVAL, type_text
from freshet.sql.check.scope import TypedColumns
from freshet.sql.flows.condition import Named, Sides
from freshet.sql.flows.flow import Flow, Inputs, Span, Want
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.logical import LogicalJoin
from freshet.sql.parse.errors import fail
from freshet.sql.parse.text import column, parse_expression, to_sql
from freshet.sql.parse.trees import column_names

_ROWS = (
    "a window of rows counts tuples, and a join with a table may make several of one, or none: join in a sub-query and "
    "put the window behind it, as in FROM (SELECT ... FROM s JOIN {}) [ROWS 10]"
)


class LookupFlow(Flow):
    """A join of a flow with a table. What is known of the flow stays true: its times, its windows, its order.

    Its columns are those of the left input, then those of the right one; ``schema`` has all columns of the table.
    """

    def __init__(self, join: LogicalJoin, columns: TypedColumns, inputs: Sequence[Flow], schema: TypedColumns) -> None:
        tables = [side.traits.table for side in inputs]
        stream = 0 if tables[0] is None else 1
        table = tables[1 - stream]
        if table is None or tables[stream] is not None:
            problem = f"{tables[0]} and {tables[1]} are tables: join the stream with one of them first"
            raise fail(problem, join.places[1])
        if join.kind == "left" and stream == 1:
            left, right = join.aliases
            raise fail(
                f"{table} is a table, and which of its rows no tuple meets is never known: put the stream first, "
                f"as in FROM {right} LEFT JOIN {left}",
                join.places[0],
            )
        self._child, self._rows = inputs[stream], inputs[1 - stream]
        self._name, self._kind, self._table, self._stream = join.name, join.kind, table, stream
        self._schema = {name.lower(): (name, type_text(kind)) for name, kind in schema}
        self._sides = Sides(join, columns, inputs, stream)
        own = {joined: name.lower() for joined, (port, name) in self._sides.places.items() if port == stream}
        traits = self._child.traits.renamed(tuple(name for name, _ in columns), own)
        by_rows = traits.span is not None and traits.span.rows is not None
        span = Span(problem=_ROWS.format(table)) if by_rows else traits.span
        super().__init__(replace(traits, span=span, marked=False), join.places[1 - stream])

    def lag(self, name: str) -> int:
        _, own = self._sides.places.get(name.lower(), (self._stream, name))
        return self._child.lag(own)

    def emit(self, want: Want, wiring: Wiring) -> str:
        pushed = list(self._sides.own[self._stream])
        # A condition on the table alone runs behind the join, where it runs in either form. Only a LEFT JOIN needs it
        # before, to know which tuples have no partner.
        outer = self._kind == "left"
        before = self._sides.own[1 - self._stream] if outer else ()
        kept = [] if outer else [*self._sides.both, *self._sides.own[1 - self._stream]]
        for named in want.filters:
            (pushed if self._sides.of(named[1]) == {self._stream} else kept).append(named)
        return self._emit(replace(want, filters=tuple(kept)), pushed, before, wiring)

    def _emit(self, behind: Want, pushed: Sequence[Named], before: Sequence[Named], wiring: Wiring) -> str:
        tuples, rows = Inputs(), Inputs()
        keys = [(pair[self._stream], pair[1 - self._stream]) for pair in self._sides.keys]
        conditions = [predicate for _, predicate in self._sides.both] if self._kind == "left" else []
        asked = behind.reads() | {name for predicate in conditions for name in column_names(predicate)}
        columns = self._columns(asked, tuples, rows)
        named = (
            tuple(tuples.name(self._sides.inside(one)) for one, _ in keys),
            tuple(rows.name(self._sides.inside(two)) for _, two in keys),
        )
        operators = self._table_operators(rows, before)
        lookup = Lookup(
            self._name, self._table, self._read(operators), operators, self._kind, named, columns,
            tuple(map(to_sql, conditions)),
        )  # fmt: skip
        _, time = self._sides.places.get((behind.time or "").lower(), (self._stream, behind.time))
        wanted = Want(f"{self._name}.input", tuples.columns, self._sides.filters(pushed), time)
        return behind.after(wiring, wiring.add(lookup, self._child.emit(wanted, wiring)))

    def _columns(self, asked: set[str], tuples: Inputs, rows: Inputs) -> tuple[tuple[str, Literal[0, 1], str], ...]:
        """The columns behind the join: joined ones, and the hidden ones of the tuples."""
        columns: list[tuple[str, Literal[0, 1], str]] = []
        for name, (port, place) in zip(self.traits.names, self._sides.places.values(), strict=True):
            if name.lower() in asked:
                own = port == self._stream
                columns.append((name, 0 if own else 1, (tuples if own else rows).name(column(place))))
        secret = sorted(asked - self._sides.places.keys() - {ARRIVAL})
        return (*columns, *((name, 0, tuples.name(column(name))) for name in secret))

    def _table_operators(self, rows: Inputs, before: Sequence[Named]) -> tuple[Operator, ...]:
        columns = rows.columns or (("__row", exp.Literal.number(1)),)
        apart = Wiring()
        self._rows.emit(Want(f"{self._name}.table", columns, self._sides.filters(before)), apart)
        operators = tuple(apart.operators.values())
        assert all(each.plain for each in operators), "a table goes through filters and projections only"
        return operators

    def _read(self, operators: Sequence[Operator]) -> tuple[tuple[str, str], ...]:
        """The columns of the table that operators read."""
        texts = (text for each in operators for text in each.expressions)
        names = {name for text in texts for name in column_names(parse_expression(text))}
        read = tuple(field for name, field in self._schema.items() if name in names)
        # A table is read by at least one column.
        return read or tuple(self._schema.values())[:1]
