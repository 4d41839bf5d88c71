"""Continuous queries in SQL: from text to a query graph, and what can be said of expressions without Spark."""

from freshet.sql.check.failing import what_raised, why_failed
from freshet.sql.check.safe import error_count, safe
from freshet.sql.functions import OwnFunctions, check_function_name, make_macro
from freshet.sql.lower.build import build_query
from freshet.sql.lower.describe import describe
from freshet.sql.lower.flatten import flatten
from freshet.sql.lower.output import SqlTyper
from freshet.sql.parse.errors import SqlError

__all__ = [
    "OwnFunctions",
    "SqlError",
    "SqlTyper",
    "build_query",
    "check_function_name",
    "describe",
    "error_count",
    "flatten",
    "make_macro",
    "safe",
    "what_raised",
    "why_failed",
]
