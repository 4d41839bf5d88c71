"""A slow reference for folds: the operators of a query over whole streams at once, as if all time had passed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from freshet.model import Call, Filter, Join, Lifetime, Moving, Operator, Panes, Project, Query, Union

Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MACROS = """
CREATE MACRO unix_micros(t) AS epoch_us(t);
CREATE MACRO timestamp_micros(t) AS to_timestamp(t / 1000000);
SET TimeZone = 'UTC';
"""


def answers(query: Query, streams: Mapping[str, Sequence[Row]]) -> list[tuple[Any, ...]]:
    """The rows that a query gives out, in no particular order."""
    graph = query.graph
    rows = {name: [dict(row) for row in streams[name]] for name in graph.streams}
    for name in graph.order:
        rows[name] = _run(graph.operators[name], [rows[source] for source in graph.inputs[name]])
    return [tuple(row[name] for name in query.columns) for row in rows[graph.root]]


def _run(operator: Operator, inputs: list[list[Row]]) -> list[Row]:
    match operator:
        case Filter() | Project():
            return _stateless(operator, inputs[0])
        case Union():
            return [row for rows in inputs for row in rows]
        case Join():
            return _join(operator, inputs) if operator.kind == "inner" else _left_join(operator, inputs[0], inputs[1])
        case Panes():
            return _panes(operator, inputs[0])
        case Moving():
            return _moving(operator, inputs[0])
    raise AssertionError(operator)


def _stateless(operator: Filter | Project, rows: list[Row]) -> list[Row]:
    if not rows:
        return []
    if isinstance(operator, Filter):
        return fetch(f"SELECT * FROM rows WHERE {operator.predicate}", rows=rows)
    columns = ", ".join(f'{text} AS "{name}"' for name, text in operator.columns)
    return fetch(f"SELECT {columns}, __arrival FROM rows", rows=rows)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": "1"})
    connection.execute(MACROS)
    return connection


def run(text: str, **tables: Sequence[Row]) -> duckdb.DuckDBPyConnection:
    """Runs SQL over tables."""
    for name, rows in tables.items():
        _connection().register(name, pa.Table.from_pylist(list(rows), schema=_schema(rows)))
    return _connection().execute(text)


def _schema(rows: Sequence[Row]) -> pa.Schema | None:
    """Types of the columns, so that a column of NULLs has one too."""

    def kind(name: str) -> pa.DataType:
        values = [row[name] for row in rows if row[name] is not None]
        if values and isinstance(values[0], datetime):
            return pa.timestamp("us", tz="UTC")
        if values and isinstance(values[0], bool | float | str):
            return pa.array(values).type
        return pa.int64()

    return pa.schema([(name, kind(name)) for name in rows[0]]) if rows else None


def fetch(text: str, **tables: Sequence[Row]) -> list[Row]:
    """The rows of SQL over tables."""
    cursor = run(text, **tables)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def micros(value: Any) -> int:
    return value if isinstance(value, int) else (value - EPOCH) // timedelta(microseconds=1)


def _interval(row: Row, validity: Lifetime) -> tuple[int, int]:
    start = row["__arrival"] if validity.time is None else micros(row[validity.time])
    if validity.until is not None:
        return start, row[validity.until]
    assert validity.size is not None
    return start, start + validity.size


def _key(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple((row[name] is not None, row[name]) for name in names)


def _panes(panes: Panes, rows: list[Row]) -> list[Row]:
    at: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        start, until = _interval(row, panes.validity)
        for boundary in range((start // panes.slide + 1) * panes.slide, until + 1, panes.slide):
            at.setdefault((boundary, _key(row, panes.keys)), []).append(row)
    result = []
    for (boundary, _), members in sorted(at.items(), key=lambda item: item[0]):
        end = EPOCH + timedelta(microseconds=boundary)
        start_of = end - timedelta(microseconds=panes.validity.size or 0)
        keys = {name: members[0][name] for name in panes.keys}
        bounds = {"__window_start": start_of, "__window_end": end}
        result.append(
            keys | _calls(panes.calls, members) | bounds | {"__arrival": max(r["__arrival"] for r in members)}
        )
    return result


def _moving(moving: Moving, rows: list[Row]) -> list[Row]:
    result = []
    for number, row in enumerate(rows):
        before = [r for r in rows[: number + 1] if _key(r, moving.partition) == _key(row, moving.partition)]
        if moving.rows is not None:
            before = before[-moving.rows :]
        if moving.size is not None:
            times = [r["__arrival"] if moving.time is None else micros(r[moving.time]) for r in before]
            before = [r for r, time in zip(before, times, strict=True) if times[-1] - moving.size < time <= times[-1]]
        members = [r for r in before if _key(r, moving.keys) == _key(row, moving.keys)]
        carried = {name: row[name] for name in moving.carried}
        result.append(carried | _calls(moving.calls, members) | {"__arrival": row["__arrival"]})
    return result


def _join(join: Join, inputs: list[list[Row]]) -> list[Row]:
    return [_together(join, rows, valid) for rows in itertools.product(*inputs) if (valid := _met(join, rows))]


def _left_join(join: Join, left: list[Row], right: list[Row]) -> list[Row]:
    nobody = dict.fromkeys(name for _, port, name in join.columns if port == 1)
    result = []
    for one in left:
        found = _join(join, [[one], right])
        result += found or [_together(join, (one, nobody), _interval(one, join.validity[0]))]
    return result


def _met(join: Join, rows: Sequence[Row]) -> tuple[int, int] | None:
    """When all of these rows are valid, if their keys are equal."""
    for names in zip(*join.keys, strict=True):
        values = [row[name] for row, name in zip(rows, names, strict=True) if name is not None]
        if None in values or any(value != values[0] for value in values):
            return None
    starts, ends = zip(*map(_interval, rows, join.validity), strict=True)
    return (max(starts), min(ends)) if max(starts) < min(ends) else None


def _together(join: Join, rows: Sequence[Row], valid: tuple[int, int]) -> Row:
    columns = {name: rows[port][column] for name, port, column in join.columns}
    arrival = max(row["__arrival"] for row in rows if "__arrival" in row)
    return columns | {"__from": valid[0], "__until": valid[1], "__arrival": arrival}


_FUNCTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "count_distinct": lambda values: len(set(values)),
    "sum": lambda values: sum(values) if values else None,
    "avg": lambda values: sum(values) / len(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
}


def _calls(calls: Sequence[Call], rows: Sequence[Row]) -> Row:
    return {
        call.output: _FUNCTIONS[call.function](
            [
                1 if call.column is None else row[call.column]
                for row in rows
                if not call.column or row[call.column] is not None
            ]
        )
        for call in calls
    }
