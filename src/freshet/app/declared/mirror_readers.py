"""Which queries read a mirror, and by which filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from freshet.model import Lookup, Operator, Query
from freshet.sources.mirror.readers import MirrorReader

ReadingWay = tuple[Operator, ...]


def readers_of(mirror: str, queries: Mapping[str, Query]) -> list[MirrorReader]:
    """The queries that read a stream or a table, also by way of the answers of other queries.

    >>> from freshet.model import Filter, Project, Promises, QueryGraph
    >>> few = Filter("few.filter_1", "element = 'a'")
    >>> graph = QueryGraph.straight("prices", [few, Project("few.project", (("price", "price"),))])
    >>> over = QueryGraph.straight("few", [Project("over.project", (("price", "price"),))])
    >>> queries = {"few": Query("few", "", graph), "over": Query("over", "", over, Promises(weight=0.5))}
    >>> [(each.query, each.weight, each.ways == ((few,),)) for each in readers_of("prices", queries)]
    [('few', 1.0, True), ('over', 0.5, True)]
    """
    found = []
    for name, query in queries.items():
        if ways := tuple(dict.fromkeys(_ways(query, mirror, queries, frozenset({name})))):
            found.append(MirrorReader(name, query.promises.weight, ways))
    return found


def _ways(query: Query, mirror: str, queries: Mapping[str, Query], seen: frozenset[str]) -> Iterator[ReadingWay]:
    graph = query.graph
    for name, inputs in graph.inputs.items():
        operator = graph.operators[name]
        if isinstance(operator, Lookup) and operator.table == mirror:
            yield tuple(each for each in operator.operators if each.keeps is not None)
        for source in inputs:
            if source == mirror:
                yield from _filters(query, name)
            elif source in queries and source not in seen:
                yield from _ways(queries[source], mirror, queries, seen | {source})


def _filters(query: Query, name: str) -> Iterator[ReadingWay]:
    """The filters that rows pass from an operator on, before anything else is done with them."""
    graph = query.graph
    operator = graph.operators[name]
    if operator.keeps is None:
        yield ()
        return
    after = [each for each, inputs in graph.inputs.items() if name in inputs]
    if not after:
        yield (operator,)
    for each in after:
        for way in _filters(query, each):
            yield (operator, *way)
