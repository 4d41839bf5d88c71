"""What a query may say and this version does not run yet, with its place in the text."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from freshet.model.errors import NotRunnable
from freshet.model.query import Query
from freshet.sql.errors import Place, SqlError, place_of
from freshet.sql.functions import is_aggregate
from freshet.sql.text import parse_query


class NotRunYet(SqlError, NotRunnable):
    """The text is right, but a part of it is left to a later version."""


def not_run_yet(query: Query) -> NotRunYet | None:
    """Why a query that is right cannot run, at the place in its text; None: it can."""
    try:
        query.check_runnable()
    except NotRunnable as error:
        return located(query, error)
    return None


def located(query: Query, error: NotRunnable) -> NotRunYet:
    """The same error at its place in the text of the query.

    >>> from freshet.model import parse_schema
    >>> from freshet.sql.build import build_query
    >>> query = build_query("q", "SELECT v FROM s [ROWS 5] WHERE v > 1", {"s": parse_schema("v int")})
    >>> print(located(query, NotRunnable("query q: window is parsed and checked, but not run by this version")))
    query q, line 1: window is parsed and checked, but not run by this version
      SELECT v FROM s [ROWS 5] WHERE v > 1
                      ^
    """
    problem = str(error).removeprefix(f"query {query.name}: ")
    tree = parse_query(query.text)
    places = [place for kind, place in _parts(tree, query.text) if place is not None and problem.startswith(kind)]
    return NotRunYet(problem, min(places, default=None), query.text, query.name)


def _parts(tree: exp.Expr, text: str) -> Iterator[tuple[str, Place | None]]:
    """What may be left to a later version, with its place: the kind is the first word of the error."""
    if "period" in tree.meta:
        start = text.upper().rfind("PERIOD")
        yield "PERIOD", (start, start + len("PERIOD") - 1)
    for node in tree.walk():
        if isinstance(node, exp.Table) and node.args.get("window"):
            yield "window", place_of(node.args["window"])
        elif isinstance(node, exp.Join):
            yield "join", place_of(node.this)
        elif isinstance(node, exp.Group) or is_aggregate(node):
            yield "aggregate", place_of(node)
        elif isinstance(node, exp.Select) and node.args.get("distinct"):
            yield "distinct", place_of(node.expressions[0])
        elif isinstance(node, exp.Union) and node.args.get("distinct"):
            yield "distinct", place_of(node.expression)
