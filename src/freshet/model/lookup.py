"""Lookups: joins with tables, which remember nothing.

A table is a file that changes now and then. Each of its contents, a *version*, is in the log, and every tuple meets the
version that was there when it was taken in: the newest whose arrival is not after the tuple's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from freshet.model.operator import Filter, Project

CONTENT: Final = "content"
"""Column of a version in the log: its rows as an Arrow IPC stream."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Joins each tuple with the rows of a table, in the order of the tuples and of the rows; arrivals are the tuples'.

    Args:
        name: Its name.
        table: The table.
        schema: Columns of the table that are read, with Spark's names of their types.
        operators: Filters over these columns, then a projection, that the table's rows go through first.
        kind: ``left``: a tuple without a row comes with NULLs.
        keys: Columns of the tuples and of the projected rows that must be equal, in pairs; NULL equals nothing.
        columns: What it gives out, as (name, 0 for a column of the tuple or 1 for one of the row, column).
        conditions: Of a ``left`` one: what else must be true of a tuple and a row, over the columns that it gives out.
            (An inner join has them behind it.)

    >>> named = Project("q.join_1.table", (("host", "host"), ("owner", "owner")))
    >>> schema = (("host", "string"), ("owner", "string"))
    >>> columns = (("size", 0, "size"), ("owner", 1, "owner"))
    >>> lookup = Lookup("q.join_1", "hosts", schema, (named,), "inner", (("host",), ("host",)), columns)
    >>> read_lookup(lookup_fields(lookup)) == lookup
    True
    """

    name: str
    table: str
    schema: tuple[tuple[str, str], ...]
    operators: tuple[Filter | Project, ...]
    kind: Literal["inner", "left"]
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    columns: tuple[tuple[str, Literal[0, 1], str], ...]
    conditions: tuple[str, ...] = ()


def version_stream(table: str) -> str:
    """Name of the stream that holds the versions of a table, a tuple each; no stream or query can be called so.

    >>> version_stream("hosts")
    'table:hosts'
    """
    return f"table:{table}"


def is_version_stream(stream: str) -> bool:
    """Whether a stream holds versions of a table.

    >>> is_version_stream("table:hosts"), is_version_stream("hosts")
    (True, False)
    """
    return stream.startswith("table:")


def lookup_fields(lookup: Lookup) -> dict[str, Any]:
    """A lookup as plain values, for JSON."""
    operators = [[each.name, each.predicate if isinstance(each, Filter) else each.columns] for each in lookup.operators]
    return {
        "lookup": lookup.name, "table": lookup.table, "schema": lookup.schema, "operators": operators,
        "kind": lookup.kind, "keys": lookup.keys, "columns": lookup.columns, "conditions": lookup.conditions,
    }  # fmt: skip


def read_lookup(fields: Mapping[str, Any]) -> Lookup:
    """The lookup of plain values."""
    operators = tuple(
        Filter(name, body) if isinstance(body, str) else Project(name, _pairs(body))
        for name, body in fields["operators"]
    )
    left, right = (tuple(side) for side in fields["keys"])
    columns = tuple((name, port, column) for name, port, column in fields["columns"])
    return Lookup(
        fields["lookup"], fields["table"], _pairs(fields["schema"]), operators, fields["kind"], (left, right), columns,
        tuple(fields.get("conditions", ())),
    )  # fmt: skip


def _pairs(values: Any) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in values)
