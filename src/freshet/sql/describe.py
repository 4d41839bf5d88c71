"""A query graph as text for people."""

from __future__ import annotations

from freshet.model.operator import Aggregate, Distinct, Filter, Join, Operator, Project, Union, Window
from freshet.model.query import QueryGraph
from freshet.model.units import duration_text


def describe(graph: QueryGraph) -> str:
    """The tree of operators, the output first, what each reads below it.

    >>> from freshet.model import parse_schema
    >>> from freshet.sql.build import build_query
    >>> query = build_query("q", "SELECT k, v * 2 AS w FROM s WHERE v > 1", {"s": parse_schema("k int, v int")})
    >>> print(describe(query.graph))
    q.project: k, v * 2 AS w
      q.filter_1: v > 1
        s
    """
    return "\n".join(_lines(graph, graph.root, 0))


def _lines(graph: QueryGraph, node: str, depth: int) -> list[str]:
    operator = graph.operators.get(node)
    text = node if operator is None else f"{node}: {operator_text(operator)}"
    below = [line for name in graph.inputs.get(node, ()) for line in _lines(graph, name, depth + 1)]
    return ["  " * depth + text, *below]


def operator_text(operator: Operator) -> str:
    """What an operator does, in one line.

    >>> operator_text(Window("q.window_1", "range", size=60.0, slide=10.0))
    '[RANGE 1 min SLIDE 10 s]'
    """
    match operator:
        case Filter():
            return operator.predicate
        case Project():
            return _columns_text(operator.columns)
        case Union():
            return "UNION ALL"
        case Distinct():
            return "DISTINCT"
        case Window():
            return _window_text(operator)
        case Join():
            on = f" ON {operator.condition}" if operator.condition else ""
            columns = _columns_text(operator.columns)
            return f"{operator.left} {operator.kind.upper()} JOIN {operator.right}{on} GIVING {columns}"
        case Aggregate():
            keys = f" GROUP BY {', '.join(operator.keys)}" if operator.keys else ""
            having = f" HAVING {operator.having}" if operator.having else ""
            return f"{_columns_text(operator.columns)}{keys}{having}"


def _columns_text(columns: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(text if text == name else f"{text} AS {name}" for name, text in columns)


def _window_text(window: Window) -> str:
    partition = f"PARTITION BY {', '.join(window.partition)} " if window.partition else ""
    if window.kind == "range" and window.size is not None:
        slide = f" SLIDE {duration_text(window.slide)}" if window.slide is not None else ""
        return f"[RANGE {duration_text(window.size)}{slide}]"
    return f"[{partition}ROWS {window.rows}]" if window.kind == "rows" else f"[{window.kind.upper()}]"
