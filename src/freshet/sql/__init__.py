"""Continuous queries in SQL: from text to a query graph, and what can be said of expressions without Spark."""

from freshet.sql.build import build_query
from freshet.sql.describe import describe
from freshet.sql.errors import SqlError
from freshet.sql.flatten import Flat, flatten
from freshet.sql.output import output_schema
from freshet.sql.safe import error_count, safe

__all__ = ["Flat", "SqlError", "build_query", "describe", "error_count", "flatten", "output_schema", "safe"]
