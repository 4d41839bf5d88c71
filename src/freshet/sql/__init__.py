"""Continuous queries in SQL: from text to a query graph, and what can be said of expressions without Spark."""

from freshet.sql.build import build_query
from freshet.sql.describe import describe, describe_paths
from freshet.sql.errors import SqlError
from freshet.sql.flatten import Flat, flatten
from freshet.sql.later import NotRunYet, not_run_yet
from freshet.sql.output import output_schema, query_schema, schema_before
from freshet.sql.safe import error_count, safe

__all__ = [
    "Flat",
    "NotRunYet",
    "SqlError",
    "build_query",
    "describe",
    "describe_paths",
    "error_count",
    "flatten",
    "not_run_yet",
    "output_schema",
    "query_schema",
    "safe",
    "schema_before",
]
