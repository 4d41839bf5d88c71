"""Checking the queries of an application without Spark: order, text, and what each one reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import pyarrow as pa
from sqlglot import exp

from freshet.app.problems import Problem
from freshet.app.spec import QuerySpec
from freshet.model import Query, UserError
from freshet.sql import SqlError, build_query, output_schema
from freshet.sql.text import parse_query


@dataclass(slots=True)
class Checked:
    """What the check found."""

    queries: dict[str, Query] = field(default_factory=dict)
    """The queries that can run, each after those that it reads."""
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    """Columns of streams and outputs; the type is null where only Spark knows it."""
    problems: list[Problem] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Names about which nothing more can be said."""


def check_queries(
    streams: Mapping[str, pa.Schema], specs: Mapping[str, QuerySpec], broken: frozenset[str] = frozenset()
) -> Checked:
    """Checks queries over streams; ``broken`` are streams whose own problems are known already."""
    checked = Checked(schemas=dict(streams), broken=set(broken))
    reads = {name: reads_of(spec.sql) & (specs.keys() | broken) for name, spec in specs.items()}
    for name in _in_order(reads, checked):
        spec = specs[name]
        if reads[name] & checked.broken:
            checked.broken.add(name)
            continue
        try:
            query = make_query(spec, checked.schemas)
            checked.schemas[name] = columns_of(query, checked.schemas)
        except UserError as error:
            checked.problems.append(Problem(f"queries.{name}.sql", sentence(error, name)))
            checked.broken.add(name)
        else:
            checked.queries[name] = query
    return checked


def make_query(spec: QuerySpec, schemas: Mapping[str, pa.Schema]) -> Query:
    """The query of a declaration, over streams and outputs of these schemas."""
    return build_query(spec.name, spec.sql, schemas, weight=spec.weight, start=spec.start, on_error=spec.on_error)


def columns_of(query: Query, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of a query's output, as far as they are known without Spark."""
    path = query.paths[0]
    return output_schema(path.operators, schemas[path.stream])


def reads_of(sql: str) -> set[str]:
    """Names in the FROMs of a query; none where its text cannot be parsed (the check says why).

    >>> sorted(reads_of("SELECT v FROM s UNION ALL SELECT v FROM q"))
    ['q', 's']
    """
    try:
        tree = parse_query(sql)
    except UserError:
        return set()
    own = {part.alias for part in tree.find_all(exp.CTE)}
    return {table.name for table in tree.find_all(exp.Table)} - own


def sentence(error: UserError, query: str) -> str:
    """The text of an error without the name of the query, which its place says already."""
    text = str(error)
    if isinstance(error, SqlError):
        text = text.removeprefix(f"query {query}").lstrip(",: ")
    return text


def _in_order(reads: Mapping[str, set[str]], checked: Checked) -> list[str]:
    """Every query after those that it reads; a circle is a problem, and the queries behind it are left out."""
    remaining = dict(reads)
    while True:
        try:
            return [name for name in TopologicalSorter(remaining).static_order() if name in remaining]
        except CycleError as error:
            circle = list(dict.fromkeys(reversed(error.args[1])))
            text = f"reads its own output: {' reads '.join([*circle, circle[0]])}"
            checked.problems.append(Problem(f"queries.{circle[0]}.sql", text))
            checked.broken.update(circle)
            remaining = {name: names for name, names in remaining.items() if name not in circle}
