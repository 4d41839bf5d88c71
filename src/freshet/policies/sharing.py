"""Overlapping queries: operators that several queries have in common run once for all (CAR §6.3.1-6.3.2).

The common beginning of queries becomes a *hidden query*, whose output the queries read with cursors of their own,
exactly as a query reads another query's output. Tuples keep their arrival, so latencies and ``now()`` are the same,
and so are the answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

import sqlglot

from freshet.model import Curve, Filter, Project, Query, QueryGraph

PREFIX: Final = "__shared_"
"""Names of hidden queries begin so."""

Key = tuple[str, ...]
"""What an operator does, normalised: equal keys are the same work."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Queries after the rewrite.

    Args:
        queries: Hidden queries first, each before those that read it, then all others in their order.
        members: The queries that each hidden query serves, directly or not, by its name.
    """

    queries: tuple[Query, ...]
    members: Mapping[str, tuple[str, ...]]


def is_shared(stream: str) -> bool:
    """Whether a stream is the output of a hidden query.

    >>> is_shared("__shared_1a2b"), is_shared("packets")
    (True, False)
    """
    return stream.startswith(PREFIX)


def share(
    queries: Sequence[Query],
    rest: Mapping[str, float] | None = None,
    apart: Mapping[str, Hashable] | None = None,
) -> Shared:
    """Has the operators that queries begin with in common run once.

    Only straight queries take part (one path, no PERIOD), and only those whose errors give NULL: a failure must not hit
    a neighbour. The last operator always stays with its query. A hidden query gets the greatest weight of those it
    serves, and the *sum* of their curves: its slope is what all of them lose per second while a tuple waits, its next
    critical point the nearest one of any of them.

    Args:
        queries: All queries.
        rest: Seconds that a tuple still takes in a query after what it shares, by name: its curve counts that much
            sooner.
        apart: Queries of different values here do not share (they stand at different tuples, say); the values are in
            the names of the hidden queries.

    >>> from freshet.sql import build_query
    >>> from freshet.model import parse_schema
    >>> schemas = {"s": parse_schema("k int, v double")}
    >>> texts = {"a": "SELECT k FROM s WHERE v > 1 AND k = 2", "b": "SELECT v FROM s WHERE v>1", "c": "SELECT v FROM s"}
    >>> shared = share([build_query(name, text, schemas) for name, text in texts.items()])
    >>> [(query.name[:9], len(query.paths[0].stateless), query.paths[0].stream[:9]) for query in shared.queries]
    [('__shared_', 1, 's'), ('a', 2, '__shared_'), ('b', 1, '__shared_'), ('c', 1, 's')]
    """
    current = {query.name: query for query in queries}
    members: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, Hashable] = dict(apart or {})
    while groups := _groups(list(current.values()), reasons):
        for names, length in groups:
            reason = reasons.get(names[0])
            first = _hidden(current[names[0]], length, reason)
            reasons[first.name] = reason
            for name in names:
                current[name] = _without(current[name], length, first.name)
            current[first.name] = first
            members[first.name] = tuple(dict.fromkeys(each for name in names for each in members.get(name, (name,))))
    promised = {query.name: query for query in queries}
    hidden = [
        _promised(current.pop(name), [promised[each] for each in served], rest) for name, served in members.items()
    ]
    return Shared((*_in_order(hidden), *current.values()), members)


def _groups(queries: Sequence[Query], reasons: Mapping[str, Hashable]) -> list[tuple[list[str], int]]:
    """Queries that begin alike, with how many operators they have in common; a query is in one group at most."""
    alike: dict[tuple[str, str, Key, Hashable], list[Query]] = defaultdict(list)
    for query in queries:
        keys = _keys(query)
        if len(keys) > 1:
            alike[query.graph.streams[0], query.start, keys[0], reasons.get(query.name)].append(query)
    return [
        ([query.name for query in group], _common([_keys(query)[:-1] for query in group]))
        for group in alike.values()
        if len(group) > 1
    ]


def _keys(query: Query) -> list[Key]:
    """The keys of a straight query's operators; none where it cannot share."""
    if not query.graph.is_straight or query.period is not None or query.on_error == "fail":
        return []
    return [_key(operator) for operator in query.paths[0].stateless]


def _key(operator: Filter | Project) -> Key:
    if isinstance(operator, Filter):
        return ("filter", _normal(operator.predicate))
    return ("project", *(part for name, text in operator.columns for part in (name, _normal(text))))


def _normal(text: str) -> str:
    """Expressions of the same meaning but for spaces, letter case of keywords and needless quotes are one."""
    return sqlglot.parse_one(text, dialect="spark").sql(dialect="spark", comments=False)


def _common(each: Sequence[Sequence[Key]]) -> int:
    """How many keys all begin with."""
    length = 0
    for keys in zip(*each, strict=False):
        if len(set(keys)) > 1:
            break
        length += 1
    return length


def _hidden(query: Query, length: int, reason: Hashable) -> Query:
    """The query of the first operators; its name says what it does, so that it is the same after a restart."""
    path = query.paths[0]
    text = repr((path.stream, query.start, _keys(query)[:length], reason))
    name = PREFIX + sha256(text.encode()).hexdigest()[:12]
    operators = [
        replace(operator, name=f"{name}.{index + 1}") for index, operator in enumerate(path.stateless[:length])
    ]
    return Query(name, "", QueryGraph.straight(path.stream, operators), start=query.start, hidden=True)


def _without(query: Query, length: int, stream: str) -> Query:
    """The query after its first operators, which reads their output instead."""
    return replace(query, graph=QueryGraph.straight(stream, query.paths[0].stateless[length:]))


def _promised(hidden: Query, served: Sequence[Query], rest: Mapping[str, float] | None) -> Query:
    weight, curve = promise_to([(each.weight, each.curve, (rest or {}).get(each.name, 0.0)) for each in served])
    return replace(hidden, weight=weight, curve=curve)


def promise_to(served: Sequence[tuple[float, Curve | None, float]]) -> tuple[float, Curve | None]:
    """Weight and curve of shared work, from (weight, curve, seconds that its tuples still take) of those it serves.

    >>> promise_to([(0.5, Curve.deadline(1.0), 0.0), (0.25, Curve.deadline(3.0), 1.0)])
    (0.5, Curve([(0.0, 2.0), (1.0, 2.0), (1.0, 1.0), (2.0, 1.0), (2.0, 0.0)]))
    """
    curves = [(curve, delay) for _, curve, delay in served if curve is not None]
    total = Curve.total([curve for curve, _ in curves], [delay for _, delay in curves]) if curves else None
    return max(weight for weight, _, _ in served), total


def _in_order(hidden: Sequence[Query]) -> list[Query]:
    """Each after the one that it reads."""
    ordered: dict[str, Query] = {}
    waiting = {query.name: query for query in hidden}
    while waiting:
        for name, query in list(waiting.items()):
            if query.graph.streams[0] not in waiting:
                ordered[name] = waiting.pop(name)
    return list(ordered.values())
