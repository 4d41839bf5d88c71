"""What a test gives: rows by stream, or what happens one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from freshet.app import App
from freshet.app.declared.problems import did_you_mean
from freshet.app.declared.spec import TableSpec
from freshet.log.intake.conversion import convert
from freshet.model import UserError
from freshet.sources.push import PushedRows, as_rows
from freshet.sources.table_file import read_table_file


class Happening:
    """What may happen to an application: rows come, time passes, a table changes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Push(Happening):
    """Rows come to a stream.

    Args:
        stream: Its name.
        rows: A list of mappings of column to value, a pyarrow Table, or a pandas DataFrame.
        at: When they arrive: a datetime, or seconds since the epoch; never before the last rows of any stream. None:
            together with the rows before them.
    """

    stream: str
    rows: PushedRows
    at: datetime | float | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(Happening):
    """The event time of a stream has come this far, although no row came."""

    stream: str
    time: datetime | float


@dataclass(frozen=True, slots=True)
class Put(Happening):
    """A table has these rows from now on."""

    table: str
    rows: PushedRows


Given = Mapping[str, PushedRows] | Sequence[Happening]
"""Rows by stream and table, or what happens one after the other."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a test gives, checked: the first contents of tables, and everything that happens after that."""

    tables: Mapping[str, PushedRows]
    events: tuple[Happening, ...]


def read_script(app: App, given: Given) -> Script:
    """Reads what a test gives.

    >>> app = App("monitor")
    >>> app.stream("packets", "size int")
    >>> read_script(app, {"packets": [{"size": 1}]}).events
    (Push(stream='packets', rows=[{'size': 1}], at=None),)
    >>> read_script(app, {"packet": []})
    Traceback (most recent call last):
    freshet.model.errors.UserError: there is no stream 'packet' (did you mean 'packets'?) (streams: packets)
    """
    events = _events(app, given)
    for event in events:
        if isinstance(event, Put):
            table_of(app, event.table)
        elif isinstance(event, Push | Heartbeat):
            check_stream(app, event.stream)
        else:
            raise UserError(f"give events: Push, Heartbeat or Put, not {event!r}")
    first = next((place for place, event in enumerate(events) if not isinstance(event, Put)), len(events))
    tables: dict[str, PushedRows] = {}
    later: list[Happening] = []
    for event in events[:first]:
        if isinstance(event, Put) and event.table not in tables:
            tables[event.table] = event.rows
        else:
            later.append(event)
    return Script(tables, (*later, *events[first:]))


def _events(app: App, given: Given) -> list[Happening]:
    if not isinstance(given, Mapping):
        return list(given)
    tables = [Put(name, rows) for name, rows in given.items() if name in app.tables]
    return [*tables, *(Push(name, rows) for name, rows in given.items() if name not in app.tables)]


def check_stream(app: App, name: str) -> None:
    """Refuses a name that no stream has."""
    if name in app.queries:
        raise UserError(f"{name} is a query: give rows to the streams that it reads")
    if name not in app.streams:
        raise UserError(_unknown("stream", name, [*app.streams, *app.tables], app.streams))


def table_of(app: App, name: str) -> TableSpec:
    """The table with a name."""
    if name not in app.tables:
        raise UserError(_unknown("table", name, app.tables, app.tables))
    return app.tables[name]


def _unknown(kind: str, name: str, close: Sequence[str] | Mapping[str, Any], known: Mapping[str, Any]) -> str:
    return f"there is no {kind} {name!r}{did_you_mean(name, close)} ({kind}s: {', '.join(known) or 'none'})"


def table_rows(spec: TableSpec, rows: PushedRows | None) -> pa.Table:
    """The content of a table; if ``rows`` is None, what is in its file.

    >>> from pathlib import Path
    >>> from freshet.model import parse_schema
    >>> spec = TableSpec("hosts", Path("hosts.csv"), parse_schema("host string, port int"))
    >>> table_rows(spec, [{"host": "a", "port": "80"}]).to_pylist()
    [{'host': 'a', 'port': 80}]
    >>> table_rows(spec, [{"host": "a", "port": "http"}])
    Traceback (most recent call last):
    freshet.model.errors.UserError: table hosts, row 1: column port: 'http' is not of type int
    """
    if rows is None:
        if spec.file is None:
            raise UserError(f"table {spec.name} is a mirror, and nothing is polled here: give its rows")
        try:
            return read_table_file(spec.file, spec.schema, spec.format)
        except UserError as error:
            raise UserError(f"table {spec.name}: {error}; or give its rows: {{{spec.name!r}: [...]}}") from None
    taken = as_rows(rows)
    values = taken if isinstance(taken, pa.Table | pa.RecordBatch) else None
    names = list(dict.fromkeys(name for row in taken for name in row)) if values is None else values.schema.names
    strange = [name for name in names if name not in spec.schema.names]
    if strange:
        raise UserError(f"table {spec.name} has no column {', '.join(strange)}: it has {', '.join(spec.schema.names)}")
    return pa.Table.from_arrays([_column(spec, taken, field) for field in spec.schema], schema=spec.schema)


def _column(spec: TableSpec, rows: Any, field: pa.Field) -> pa.Array:
    if isinstance(rows, pa.Table | pa.RecordBatch):
        column = rows.column(field.name) if field.name in rows.schema.names else pa.nulls(len(rows), field.type)
        values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    else:
        values = [row.get(field.name) for row in rows]
    if not len(values):
        return pa.array([], field.type)
    array, reasons = convert(values, field, "UTC")
    for place, reason in reasons.items():
        raise UserError(f"table {spec.name}, row {place + 1}: {reason}")
    return array
