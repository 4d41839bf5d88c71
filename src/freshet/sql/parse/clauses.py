"""What a query may be made of: whatever else the parser takes is refused by name, never dropped in silence."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from freshet.sql.parse.errors import fail

_ENDLESS: Final = (
    "a stream has no end, so {} has no meaning: leave it out, and order or cut what you read from the output"
)
_REFUSED: Final = {
    "order": _ENDLESS.format("ORDER BY"),
    "sort": _ENDLESS.format("SORT BY"),
    "cluster": _ENDLESS.format("CLUSTER BY"),
    "distribute": _ENDLESS.format("DISTRIBUTE BY"),
    "limit": _ENDLESS.format("LIMIT"),
    "offset": _ENDLESS.format("OFFSET"),
    "qualify": "QUALIFY needs OVER, which is not for streams: put a window after the stream's name, as in s [ROWS 10]",
    "windows": "WINDOW is not for streams: put a window after the stream's name, as in s [ROWS 10]",
    "laterals": "LATERAL VIEW makes several rows of one, which a query cannot do: leave it out",
    "hint": "hints are not supported: leave out what is between /*+ and */",
    "hints": "hints are not supported: leave out WITH and its parentheses",
    "on": "DISTINCT ON is not supported: write GROUP BY with aggregates such as max(v)",
    "by_name": "BY NAME is not supported: name the columns in the same order in each SELECT",
    "materialized": "MATERIALIZED is not supported: leave it out",
    "columns": "an alias cannot rename columns: use AS in the SELECT",
    "sample": "TABLESAMPLE is not supported: filter with WHERE, as in WHERE k % 10 = 0",
    "pivots": "PIVOT is not supported: write an aggregate for each column, as in sum(v) FILTER (WHERE k = 1) AS k1",
    "format": "a CAST has no FORMAT: write to_date(text, format) or to_timestamp(text, format)",
    "default": "a CAST has no DEFAULT: write coalesce(TRY_CAST(text AS type), value)",
    "field": "IN takes a list in parentheses: write array_contains(array, value) for an array",
    "unnest": "IN takes a list in parentheses: write array_contains(array, value) for an array",
}
_SET: Final = frozenset(("this", "expression", "distinct", "with_"))
_ALLOWED: Final[dict[type[exp.Expr], frozenset[str]]] = {
    exp.Select: frozenset(("distinct", "expressions", "from_", "joins", "where", "group", "having", "with_")),
    exp.Subquery: frozenset(("this", "alias", "window", "with_", "joins")),
    exp.Union: _SET,
    exp.Except: _SET,
    exp.Intersect: _SET,
    exp.Distinct: frozenset(("expressions",)),
    exp.CTE: frozenset(("this", "alias")),
    exp.TableAlias: frozenset(("this",)),
    exp.Cast: frozenset(("this", "to", "safe")),
    exp.TryCast: frozenset(("this", "to", "safe", "requires_string")),
    # A sub-query has a message of its own.
    exp.In: frozenset(("this", "expressions", "query")),
    exp.Star: frozenset(("except_", "replace", "rename")),
}
"""By type of node the parts that are looked at."""
_NOT_SPARK: Final[dict[type[exp.Expr], str]] = {
    exp.SimilarTo: "SIMILAR TO is not Spark SQL: write RLIKE",
    exp.Glob: "GLOB is not Spark SQL: write LIKE or RLIKE",
    exp.Overlaps: "OVERLAPS is not supported: compare the ends, as in a.start < b.end AND b.start < a.end",
    exp.PropertyEQ: ":= is not Spark SQL: write = to compare",
    exp.JSONExtract: "-> is not Spark SQL: write get_json_object(text, '$.name')",
    exp.JSONExtractScalar: "->> is not Spark SQL: write get_json_object(text, '$.name')",
    exp.JSONBExtract: "#> is not Spark SQL: write get_json_object(text, '$.name')",
    exp.JSONBExtractScalar: "#>> is not Spark SQL: write get_json_object(text, '$.name')",
    exp.JSONBContainsTopKey: "? is not Spark SQL: write get_json_object(text, '$.name') IS NOT NULL",
    exp.ParseJSON: "a JSON literal is not supported: write the text, and get_json_object(text, '$.name')",
    exp.AtTimeZone: "AT TIME ZONE is not Spark SQL: write from_utc_timestamp(ts, 'Europe/Berlin')",
    exp.StrToDate: "a CAST has no FORMAT: write to_date(text, format)",
    exp.StrToTime: "a CAST has no FORMAT: write to_timestamp(text, format)",
    exp.IgnoreNulls: "IGNORE NULLS is for OVER, which is not for streams: leave it out",
    exp.RespectNulls: "RESPECT NULLS is for OVER, which is not for streams: leave it out",
    exp.WithinGroup: "WITHIN GROUP is not supported: write approx_percentile(v, 0.5)",
    exp.HavingMax: "HAVING MAX is not Spark SQL: write max_by(v, k)",
}


def check_clauses(tree: exp.Expr) -> None:
    """Refuses, by name, what the parser accepts and nothing uses.

    >>> from freshet.sql.parse.dialect import Freshet
    >>> check_clauses(Freshet().parse("SELECT k FROM (SELECT k FROM s) TABLESAMPLE (5 ROWS)")[0])
    Traceback (most recent call last):
    freshet.sql.parse.errors.SqlError: query: TABLESAMPLE is not supported: filter with WHERE, as in WHERE k % 10 = 0
    """
    for node in tree.walk():
        if type(node) in _NOT_SPARK:
            raise fail(_NOT_SPARK[type(node)], node)
        allowed = _ALLOWED.get(type(node))
        for key, value in node.args.items() if allowed is not None else ():
            if value and key not in (allowed or ()) and not key.startswith("_"):
                other = f"{key.strip('_').upper()} is not supported in a continuous query: leave it out"
                raise fail(_REFUSED.get(key, other), _place(value, node))
        _check_node(node)


def _place(value: object, node: exp.Expr) -> exp.Expr:
    first = value[0] if isinstance(value, list) else value
    return first if isinstance(first, exp.Expr) and first.find(exp.Identifier, exp.Literal) else node


def _check_node(node: exp.Expr) -> None:
    if isinstance(node, exp.Select) and not node.expressions:
        raise fail("SELECT names no column: write at least one, or *", node)
    if isinstance(node, exp.In) and not any(node.args.get(key) for key in ("expressions", "query")):
        raise fail("IN needs at least one value: write IN (1, 2)", node)
    if isinstance(node, exp.Group) and node.args.get("all") is False:
        raise fail("GROUP BY DISTINCT is not Spark SQL: leave out DISTINCT", node)
    if isinstance(node, exp.Identifier) and not node.name:
        raise fail("a name is empty: write one between the quotes", node.parent)
    if isinstance(node, exp.With):
        _check_names_of(node)
    if isinstance(node, exp.Anonymous):
        _check_arguments(node)


def _check_names_of(clause: exp.With) -> None:
    seen: set[str] = set()
    for cte in clause.expressions:
        if cte.alias.lower() in seen:
            raise fail(f"WITH names {cte.alias} twice: give one of them another name", cte.args.get("alias"))
        seen.add(cte.alias.lower())


def _check_arguments(call: exp.Expr) -> None:
    for argument in call.expressions:
        if isinstance(argument, exp.Order | exp.Limit | exp.Sort):
            word = "LIMIT" if isinstance(argument, exp.Limit) else "ORDER BY"
            raise fail(f"{word} within a call is not supported: leave it out", call)
