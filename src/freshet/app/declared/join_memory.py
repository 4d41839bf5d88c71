"""Joins by ordered keys whose memory has a bound: which operators know of it, and what their tuples cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from freshet.model import Query, UserError
from freshet.model.join_budget import JoinBudget, RowCost
from freshet.model.join_buffer import may_rest
from freshet.model.key_joins import key_joins
from freshet.model.operators import Join, Marked
from freshet.model.units import bytes_text
from freshet.sql import SqlTyper

_INDEXES: Final = 32
"""Bytes that a remembered tuple needs in indexes: its hash, its place, and its end."""


def with_bounds(query: Query, size: int | None) -> Query:
    """A query whose joins by ordered keys know that their memory has a bound.

    Args:
        query: The query.
        size: What it may have for itself, in bytes; None: a part of what the application has.

    Raises:
        UserError: It has no such join, or one whose memory cannot be reckoned from its streams.
    """
    graph, operators = query.graph, dict(query.graph.operators)
    joins = key_joins(graph)
    if not joins:
        if size is not None:
            raise UserError("join_memory is for joins by ordered keys, and this query has none: leave it out")
        return query
    for join, ports in joins.items():
        above = set(graph.inputs[join])
        behind = _behind(query, above)
        if any(len(port) != 1 for port in ports) or any(len(graph.inputs[name]) > 1 for name in behind):
            raise UserError(
                f"with join_memory, a join must read streams, and {join} reads another join or a UNION: name all "
                "streams in one FROM, which is one join, or leave join_memory out"
            )
        for name in behind:
            operator = operators.get(name)
            if isinstance(operator, Marked):
                operators[name] = replace(operator, join=join)
    return replace(query, graph=replace(graph, operators=operators), join_memory=size)


def _behind(query: Query, names: set[str]) -> set[str]:
    """Some operators, and all that they read."""
    found, waiting = set[str](), [name for name in names if name in query.graph.operators]
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting += [each for each in query.graph.inputs[name] if each in query.graph.operators and each not in found]
    return found


def budgets_of(
    query: Query, schemas: Mapping[str, pa.Schema], size: int, *, unbounded: bool = False
) -> list[JoinBudget]:
    """The budgets of the joins of a query, each with an equal part of the size.

    Args:
        query: The query.
        schemas: Columns of the streams that it reads.
        size: Bytes of all its joins together.
        unbounded: Whether joins of streams without a bound are told, too.
    """
    from freshet.kernels.folds.join import CompiledJoin

    found = []
    joins = {
        name: ports
        for name, ports in key_joins(query.graph).items()
        if _is_bounded(query, name) or (unbounded and all(len(port) == 1 for port in ports))
    }
    columns = query.graph.schemas(schemas, SqlTyper())
    for name, ports in joins.items():
        operator = query.graph.operators[name]
        assert isinstance(operator, Join)
        states = CompiledJoin(operator, *(columns[source] for source in query.graph.inputs[name])).states
        streams = tuple(stream for port in ports for stream, _ in port)
        costs, rests = tuple(map(_cost, states)), may_rest(query.join_buffer)
        left = operator.kind == "left"
        found.append(JoinBudget(name, streams, costs, size // len(joins), rests, operator.sorted, left))
    return found


def _is_bounded(query: Query, join: str) -> bool:
    operators = query.graph.operators.values()
    return any(isinstance(each, Marked) and each.join == join for each in operators)


def _cost(state: pa.Schema) -> RowCost:
    """What a row of a state costs: fixed widths, places of texts, a bit for NULL, and indexes."""
    widths = [_width(field.type) for field in state]
    varying = {field.name.split("_")[0] for field, width in zip(state, widths, strict=True) if width is None}
    fixed = sum(4 if width is None else width for width in widths) + -(-len(widths) // 8) + _INDEXES
    # A text may be there as a key and as a column.
    return RowCost(fixed, len(varying))


def _width(kind: pa.DataType) -> int | None:
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return None


def check_total(total: int | None, declared: Mapping[str, int | None], bounded: int) -> None:
    """Refuses parts that are more than the whole.

    Args:
        total: What the application has.
        declared: What queries declare.
        bounded: Number of queries that declare nothing and need a part.

    >>> check_total(100, {"a": 60, "b": 50, "c": None}, 1)
    Traceback (most recent call last):
    freshet.model.errors.UserError: join_memory of a and b is 110 B together, and the application has only 100 B
    """
    own = {name: size for name, size in declared.items() if size is not None}
    if total is None:
        return
    if sum(own.values()) > total or (bounded and sum(own.values()) == total):
        of = " and ".join(own)
        more = "" if sum(own.values()) > total else ", so that nothing is left for the others"
        raise UserError(
            f"join_memory of {of} is {bytes_text(sum(own.values()))} together, and the application has only "
            f"{bytes_text(total)}{more}"
        )
