"""What DuckDB makes of a log in one batch: the answers of queries, and how many rows there are on the way to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import duckdb
import pyarrow as pa
from tests.engine.grammar.duckdb_text import joined, output
from tests.engine.grammar.forms import Body, Combined, Derived, Query, Select
from tests.engine.grammar.logs import NAMED, Expected
from tests.engine.grammar.shapes import body_shape

from freshet.testing.compare import Row

Releases = Mapping[str, Sequence[int]]
"""The releases of periodic queries at which they answered, in microseconds."""
Gone = Sequence[tuple[str, int, int]]
"""What levels left out: edge, release and offset."""


def answers(
    queries: Sequence[Query], held: Mapping[str, Expected], releases: Releases, gone: Gone = ()
) -> dict[str, list[Row]]:
    """The rows of all queries, each followed by its time."""
    connection = _over(held)
    columns = zip(("edge_", "g_", "at_"), (pa.string(), pa.int64(), pa.int64()), range(3), strict=True)
    left_out = {name: pa.array([each[place] for each in gone], kind) for name, kind, place in columns}
    connection.register("gone_", pa.table(left_out))
    found = {}
    for query in queries:
        _make(connection, query, releases)
        shown = ", ".join(name for name, _ in body_shape(query.body).columns)
        found[query.name] = connection.execute(f"SELECT {shown}, at_ FROM {query.name}").fetchall()
    return found


def joins_more(limit: int, queries: Sequence[Query], held: Mapping[str, Expected], releases: Releases) -> bool:
    """Whether the joins of all queries have more rows than a limit; nothing else makes many out of few.

    What is inside is counted first, and nothing beyond the limit is computed, so that this takes little time however
    many rows there would be.
    """
    joins = [list(_joins(query.body)) for query in queries]
    last = max((number for number, some in enumerate(joins) if some), default=-1)
    connection, left = _over(held) if last >= 0 else _duck(), limit
    for number, query in enumerate(queries[: last + 1]):
        _release(connection, query, releases)
        for join in joins[number]:
            left -= _count(connection, joined(join), left)
            if left < 0:
                return True
        if number < last:
            _make(connection, query, releases)
    return False


def _joins(body: Body) -> Iterator[Select]:
    """All joins of a query: the inner ones first, and of several members first those of the first two, and so on."""
    for select in body.members if isinstance(body, Combined) else (body,):
        for member in select.members:
            if isinstance(member.source, Derived):
                yield from _joins(member.source.body)
        for count in range(1, len(select.joins) + 1):
            yield replace(select, members=select.members[: count + 1], joins=select.joins[:count])


def _count(connection: duckdb.DuckDBPyConnection, rows: str, limit: int) -> int:
    [(found,)] = connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT {limit + 1})").fetchall()
    return int(found)


def _make(connection: duckdb.DuckDBPyConnection, query: Query, releases: Releases) -> None:
    _release(connection, query, releases)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {query.name} AS {output(query)}")


def _release(connection: duckdb.DuckDBPyConnection, query: Query, releases: Releases) -> None:
    """Says which releases a periodic query has."""
    if query.period:
        connection.register("releases_", pa.table({"r_": pa.array(releases[query.name], pa.int64())}))


def _over(held: Mapping[str, Expected]) -> duckdb.DuckDBPyConnection:
    """A connection with the streams as tables."""
    connection = _duck()
    kinds = {"text": pa.string(), "int": pa.int32(), "float": pa.float64(), "time": pa.int64()}
    for named in NAMED:
        came = zip(held[named.name].rows, held[named.name].arrivals, strict=True)
        rows = [(*row[1:], row[0], place, None, None, arrival) for place, (row, arrival) in enumerate(came)]
        fields = [(name, kinds[kind]) for name, kind in named.shape.columns]
        schema = pa.schema([*fields, *((name, pa.int64()) for name in ("us_", "pos_", "f_", "u_", "arr_"))])
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
        connection.register(named.name, pa.Table.from_arrays(arrays, schema=schema))
    return connection


@cache
def _duck() -> duckdb.DuckDBPyConnection:
    # By default it would take four fifths of the machine's memory before it says that a case is too large.
    return duckdb.connect(config={"threads": "1", "memory_limit": "2GB", "temp_directory": ""})
