"""Lookups: joins with tables, which remember nothing.

A table is a file that changes now and then. Each of its contents, a *version*, is in the log, and every tuple meets the
version that was there when it was taken in: the newest whose arrival is not after the tuple's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import pyarrow as pa

from freshet.model.operators.base import Columns, Operator, Typer
from freshet.model.operators.project import columns_text
from freshet.model.schema import parse_schema, quoted


@dataclass(frozen=True, slots=True)
class Lookup(Operator):
    """Joins each tuple with the rows of a table, in the order of the tuples and of the rows; arrivals are the tuples'.

    Args:
        schema: Columns of the table that are read, with Spark's names of their types.
        operators: Filters over these columns, then a projection, that the table's rows go through first.
        kind: ``left``: a tuple without a row comes with NULLs.
        keys: Columns of the tuples and of the projected rows that must be equal, in pairs; NULL equals nothing.
        columns: What it outputs, as (name, 0 for a column of the tuple or 1 for one of the row, column).
        conditions: If ``left``: what else must be true of a tuple and a row, over the columns that it outputs. (For
            an inner join, filters behind it say it.)

    >>> from freshet.model.operators import Project
    >>> named = Project("q.join_1.table", (("host", "host"), ("owner", "owner")))
    >>> schema = (("host", "string"), ("owner", "string"))
    >>> columns = (("size", 0, "size"), ("owner", 1, "owner"))
    >>> Lookup("q.join_1", "hosts", schema, (named,), "inner", (("host",), ("host",)), columns).text()
    "JOIN (SELECT host, owner FROM hosts) ON host = hosts.host, as of each tuple's arrival"
    """

    tag: ClassVar[str] = "lookup"

    table: str
    schema: tuple[tuple[str, str], ...]
    operators: tuple[Operator, ...]
    kind: Literal["inner", "left"]
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    columns: tuple[tuple[str, Literal[0, 1], str], ...]
    conditions: tuple[str, ...] = ()

    @property
    def reads_table(self) -> str | None:
        return self.table

    @property
    def row_schema(self) -> pa.Schema:
        """The columns of the table that are read."""
        return parse_schema(", ".join(f"{quoted(name)} {kind}" for name, kind in self.schema))

    @property
    def row_filters(self) -> tuple[str, ...]:
        """What must be true of a row of the table."""
        return tuple(each.keeps for each in self.operators if each.keeps is not None)

    @property
    def row_columns(self) -> Columns:
        """What tuples meet of a row of the table."""
        return tuple(column for each in self.operators for column in each.makes or ())

    def called(self, name: str) -> Self:
        operators = tuple(each.called(f"{name}.table_{number}") for number, each in enumerate(self.operators, 1))
        return replace(self, name=name, operators=operators)

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        rows = self.row_schema
        for operator in self.operators:
            rows = operator.output([rows], typer)
        sides = (inputs[0], rows)
        return pa.schema([(name, sides[port].field(column).type) for name, port, column in self.columns])

    def text(self) -> str:
        equal = (f"{one} = {self.table}.{two}" for one, two in zip(*self.keys, strict=True))
        kind = "LEFT JOIN" if self.kind == "left" else "JOIN"
        where = f" WHERE {' AND '.join(self.row_filters)}" if self.row_filters else ""
        rows = f"(SELECT {columns_text(self.row_columns)} FROM {self.table}{where})"
        return f"{kind} {rows} ON {' AND '.join((*equal, *self.conditions)) or 'any'}, as of each tuple's arrival"
