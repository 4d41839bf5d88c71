"""Continuous queries in SQL: from text to a query graph, and what can be said of expressions without Spark."""

from freshet.sql.build import build_query, not_run_yet
from freshet.sql.describe import describe
from freshet.sql.errors import NotRunYet, SqlError
from freshet.sql.flatten import Flat, flatten
from freshet.sql.output import SqlTyper, query_schema
from freshet.sql.safe import error_count, safe

__all__ = [
    "Flat",
    "NotRunYet",
    "SqlError",
    "SqlTyper",
    "build_query",
    "describe",
    "error_count",
    "flatten",
    "not_run_yet",
    "query_schema",
    "safe",
]
