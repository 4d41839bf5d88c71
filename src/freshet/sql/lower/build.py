"""Text to query graph.

Choices where SQL leaves one:

- The name of an output column is its alias, else the name of the column as the user wrote it, else the text of the
  expression, as in Spark (``avg(value)``). Two columns of one name are an error that asks for AS.
- ``*`` over several streams calls a column that is in more than one of them ``alias_column``.
- A condition of WHERE that compares two streams of a FROM with commas becomes the condition of their join.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from freshet.model.errors import UserError
from freshet.model.graph import QueryGraph
from freshet.model.promises.promise import Promises
from freshet.model.query import Query
from freshet.sql.check.safe import check_growth
from freshet.sql.functions import OwnFunctions
from freshet.sql.lower.graph import GraphBuilder
from freshet.sql.lower.lower import lower
from freshet.sql.lower.periodic import check_estimates, lower_periodic
from freshet.sql.lower.select import SelectBuilder
from freshet.sql.parse.errors import SqlError
from freshet.sql.parse.limits import TOO_DEEP
from freshet.sql.parse.text import parse_query


def build_query(
    name: str,
    text: str,
    streams: Mapping[str, pa.Schema],
    *,
    promises: Promises | None = None,
    start: Literal["earliest", "latest"] = "earliest",
    on_error: Literal["null", "fail"] = "null",
    times: Mapping[str, str | None] | None = None,
    tables: Collection[str] = (),
    orders: Mapping[str, tuple[str, ...] | None] | None = None,
    ends: Collection[str] = (),
    functions: OwnFunctions | None = None,
    ordered: Mapping[str, str] | None = None,
    in_pairs: bool = False,
    whole_windows: bool = False,
) -> Query:
    """A continuous query from its text.

    Args:
        name: Name of the query and of its output.
        text: The SQL.
        streams: Schemas of everything it may read: declared streams, outputs of other queries, tables.
        promises: What is promised to it; its text adds PERIOD and DEADLINE.
        start: Where a new query begins to read.
        on_error: What an evaluation error does.
        times: Column of event time of the streams and queries that it may read, None for the arrival
            (:attr:`Query.event_time`, where :attr:`Query.has_time`). What is not in it has no time that a window could
            go by. Not given: all go by the arrival.
        tables: Names of those among ``streams`` that are tables.
        orders: The order of the queries that it may read (:attr:`Query.order`); what is not in it comes in that of the
            log.
        ends: Those of these queries whose event time is the end of a window (:attr:`Query.ends`).
        functions: What it may call besides Spark's functions.
        ordered: Columns that streams are ordered by, nearly; joins without windows go by them.
        in_pairs: Whether streams are joined two at a time, as earlier versions did; the answer is the same.
        whole_windows: Whether a periodic aggregate reads its whole window at each release instead of keeping panes; the
            answer is the same.

    Raises:
        SqlError: The text is wrong; the message shows where and says what would be right.

    >>> from freshet.model import parse_schema
    >>> query = build_query("big", "SELECT src FROM packets WHERE size > 900 AND src <> 'a'",
    ...                     {"packets": parse_schema("src string, size int")})
    >>> for name in query.graph.order:
    ...     print(query.graph.operators[name])
    Filter(name='big.filter_1', predicate='size > 900')
    Filter(name='big.filter_2', predicate="src <> 'a'")
    Project(name='big.project', columns=(('src', 'src'),))
    """
    if name in streams:
        raise UserError(f"query {name}: a stream has this name already; choose another")
    try:
        own = functions or OwnFunctions()
        tree = own.find(parse_query(text))
        graph = GraphBuilder(streams, tables, own.operators)
        output = SelectBuilder(graph).query(tree, name)
        period = tree.meta.get("period")
        promised = replace(promises or Promises(), period=period, deadline=tree.meta.get("deadline", period))
        asked = QueryGraph({}, {}, output.node)
        query = Query(name, text, asked, promised, start, on_error, output.names, has_time=False, order=None)
        check_estimates(graph, period is not None)
        if period is None:
            query = lower(query, graph, times, orders or {}, ends, tree.meta.get("emit"), in_pairs, ordered)
        else:
            query = lower_periodic(query, graph, tree.meta.get("emit"), whole_windows)
        check_growth(query.graph)
    except SqlError as error:
        raise error.within(name, text) from None
    except RecursionError:
        raise SqlError(TOO_DEEP, None, text, name) from None
    return query
