"""A query graph as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from freshet.model.graph import QueryGraph


def describe(graph: QueryGraph) -> str:
    """The tree of operators, the output first, what each reads below it, and what it remembers.

    >>> from freshet.model import parse_schema
    >>> from freshet.sql.lower.build import build_query
    >>> text = "SELECT k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] WHERE v > 1 GROUP BY k"
    >>> print(describe(build_query("q", text, {"s": parse_schema("k int, v int")}).graph))
    q.project: k, __a1 AS n
      q.aggregate: every 10 s over 1 min of arrival, for each k: count(*) AS __a1
        (remembers a partial answer of each k for every 10 s, for 1 min)
        q.aggregate.input: k
          q.filter_1: v > 1
            s
    """
    return "\n".join(_lines(graph, graph.root, 0))


def _lines(graph: QueryGraph, node: str, depth: int) -> Iterator[str]:
    operator, indent = graph.operators.get(node), "  " * depth
    if operator is None:
        yield f"{indent}{node}"
        return
    yield f"{indent}{node}: {operator.text()}"
    if operator.state_text() is not None:
        yield f"{indent}  (remembers {operator.state_text()})"
    for source in graph.inputs[node]:
        yield from _lines(graph, source, depth + 1)
    if operator.reads_table is not None:
        yield f"{indent}  {operator.reads_table} (table)"
