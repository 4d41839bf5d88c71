"""A query graph, and the paths of a query, as text for people."""

from __future__ import annotations

from freshet.model.fold import Call, Fold, Moving, Panes, Side, Validity
from freshet.model.lookup import Lookup
from freshet.model.operator import Aggregate, Distinct, Filter, Join, Operator, Project, SetOperation, Union, Window
from freshet.model.query import PathOperator, Query, QueryGraph


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
    leaf = f"{node} (table)" if node in graph.tables else node
    text = leaf if operator is None else f"{node}: {operator_text(operator)}"
    below = [line for name in graph.inputs.get(node, ()) for line in _lines(graph, name, depth + 1)]
    return ["  " * depth + text, *below]


def describe_paths(query: Query) -> str:
    """The paths of a query, each with its operators in order, and what they remember.

    >>> from freshet.model import parse_schema
    >>> from freshet.sql.build import build_query
    >>> text = "SELECT k, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k"
    >>> print(describe_paths(build_query("q", text, {"s": parse_schema("k int, v int")})))
    s -> q
      q.aggregate.input: k
      q.aggregate: every 10 s over 1 min of arrival, for each k: count(*) AS __a1
        remembers a partial answer of each k for every 10 s, for 1 min
      q.project: k, __a1 AS n
    """
    return "\n".join(
        line for path in query.paths for line in (f"{path.stream} -> {query.name}", *_path(path.operators))
    )


def _path(operators: tuple[PathOperator, ...]) -> list[str]:
    return [f"  {line}" for operator in operators for line in operator_lines(operator)]


def operator_lines(operator: PathOperator) -> list[str]:
    """An operator of a path, and below it what it remembers.

    >>> operator_lines(Filter("q.filter_1", "v > 1"))
    ['q.filter_1: v > 1']
    """
    line = f"{operator.name}: {operator_text(operator)}"
    if isinstance(operator, Filter | Project | Lookup):
        return [line]
    return [line, f"  remembers {state_text(operator)}"]


def operator_text(operator: Operator | Lookup | Fold) -> str:
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
        case SetOperation():
            return operator.kind.upper()
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
        case Panes() | Moving():
            return _computation_text(operator)
        case Side():
            return _side_text(operator)
        case Lookup():
            return _lookup_text(operator)


def state_text(fold: Fold) -> str:
    """What a fold remembers, and for how long.

    >>> state_text(Moving("q.m", None, rows=5, partition=("k",)))
    'the last 5 tuples of each k'
    """
    match fold:
        case Panes():
            return _panes_state_text(fold)
        case Moving(rows=int(rows)):
            return f"the last {rows} tuples" + (f" of each {', '.join(fold.partition)}" if fold.partition else "")
        case Moving(size=int(size)):
            return f"the tuples of the last {_span_text(size)}"
        case Moving():
            return "one partial answer of all tuples so far"
        case Side():
            own = _for_how_long(fold.validity[fold.port])
            outer = fold.kind == "left" and fold.port == 0
            return f"tuples {own}" + (", and which of them found no partner" if outer else "")


def _panes_state_text(panes: Panes) -> str:
    group = f" of each {', '.join(panes.keys)}" if panes.keys else ""
    values = {
        f"the different values of {call.column}" if call.function == "count_distinct" else f"a sketch of {call.column}"
        for call in panes.calls
        if call.function in ("count_distinct", "approx_percentile")
    }
    more = "".join(f" and {value}" for value in sorted(values))
    return f"a partial answer{group}{more} for every {_span_text(panes.slide)}, {_for_how_long(panes.validity)}"


def _computation_text(fold: Panes | Moving) -> str:
    calls = ", ".join(_call_text(call) for call in fold.calls) or "once"
    keys = f", for each {', '.join(fold.keys)}" if fold.keys else ""
    if isinstance(fold, Panes):
        changes = ", told at every change" if fold.emit == "changes" else ""
        later = f", {_span_text(fold.offset)} later," if fold.offset else ""
        return f"every {_span_text(fold.slide)}{later} over {_validity_text(fold.validity)}{keys}: {calls}{changes}"
    if fold.rows is not None:
        over = f"the last {fold.rows} tuples" + (f" of its {', '.join(fold.partition)}" if fold.partition else "")
    elif fold.size is not None:
        over = f"the last {_span_text(fold.size)} of {_time_text(fold.time)}"
    else:
        over = "all tuples so far"
    return f"with each tuple over {over}{keys}: {calls}"


def _side_text(side: Side) -> str:
    left, right = side.keys
    on = " AND ".join(f"left.{one} = right.{two}" for one, two in zip(left, right, strict=True))
    own, other = side.validity[side.port], side.validity[1 - side.port]
    name = ("left", "right")[side.port]
    kind = "LEFT JOIN" if side.kind == "left" else "JOIN"
    by = f" ON {on}" if on else " without equal columns"
    return f"{name} side of {kind} {side.fold}{by}, valid {_valid_text(own)}, the other side {_valid_text(other)}"


def _valid_text(validity: Validity) -> str:
    return ("from " if validity.size is None else "for ") + _validity_text(validity)


def _lookup_text(lookup: Lookup) -> str:
    equal = (f"{one} = {lookup.table}.{two}" for one, two in zip(*lookup.keys, strict=True))
    kind = "LEFT JOIN" if lookup.kind == "left" else "JOIN"
    filters = [each.predicate for each in lookup.operators if isinstance(each, Filter)]
    columns = [column for each in lookup.operators if isinstance(each, Project) for column in each.columns]
    where = f" WHERE {' AND '.join(filters)}" if filters else ""
    rows = f"(SELECT {_columns_text(tuple(columns))} FROM {lookup.table}{where})"
    return f"{kind} {rows} ON {' AND '.join((*equal, *lookup.conditions)) or 'any'}, as of each tuple's arrival"


def _call_text(call: Call) -> str:
    share = "" if call.parameter is None else f", {call.parameter:g}"
    name, column = call.function, call.column or "*"
    text = f"count(DISTINCT {column})" if name == "count_distinct" else f"{name}({column}{share})"
    return f"{text} AS {call.output}"


def _validity_text(validity: Validity) -> str:
    if validity.size is None:
        return f"{validity.time} to {validity.until}"
    return f"{_span_text(validity.size)} of {_time_text(validity.time)}"


def _for_how_long(validity: Validity) -> str:
    return f"until {validity.until}" if validity.size is None else f"for {_span_text(validity.size)}"


def _time_text(time: str | None) -> str:
    return "arrival" if time is None else time


def _span_text(microseconds: int) -> str:
    """A duration, exactly.

    >>> _span_text(100_000_000), _span_text(7_200_000_000), _span_text(1_500)
    ('100 s', '2 h', '1500 us')
    """
    units = ((3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))
    size, unit = next((size, unit) for size, unit in units if microseconds % size == 0)
    return f"{microseconds // size} {unit}"


def _columns_text(columns: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(text if text == name else f"{text} AS {name}" for name, text in columns)


def _window_text(window: Window) -> str:
    partition = f"PARTITION BY {', '.join(window.partition)} " if window.partition else ""
    if window.kind == "range" and window.size is not None:
        slide = f" SLIDE {_span_text(round(window.slide * 1e6))}" if window.slide is not None else ""
        later = f", ends {_span_text(round(window.offset * 1e6))} later" if window.offset else ""
        return f"[RANGE {_span_text(round(window.size * 1e6))}{slide}]{later}"
    return f"[{partition}ROWS {window.rows}]" if window.kind == "rows" else f"[{window.kind.upper()}]"
