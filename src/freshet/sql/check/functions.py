"""What is known of the functions of Spark SQL: their names, and in which kind of place they are allowed.

``functions.txt`` holds ``name kind`` for every function of Spark 4.3, so that a typo is found without Spark.
It is made from Spark's own registry::

    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    kinds = {"agg_funcs": "aggregate", "window_funcs": "window"}
    kinds |= {"generator_funcs": "generator", "table_funcs": "generator"}
    for (name,) in spark.sql("SHOW FUNCTIONS").collect():
        if name[0].isalpha():
            print(name, kinds.get(catalog.lookupFunctionInfo(identifier(name)).getGroup(), "scalar"))
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from sqlglot import exp

from freshet.model.schema import ARRIVAL
from freshet.sql.parse.trees import call, cast

IN_GRAMMAR: Final = ("timestampadd", "timestampdiff")
"""Functions that Spark's parser knows and its registry does not."""


@cache
def functions() -> dict[str, str]:
    """Kind of every function by its name in lower case: scalar, aggregate, window or generator.

    >>> functions()["sqrt"], functions()["avg"], functions()["explode"]
    ('scalar', 'aggregate', 'generator')
    """
    lines = resources.files("freshet.sql.check").joinpath("functions.txt").read_text().splitlines()
    registered = {name: kind for line in lines for name, kind in [line.split()]}
    return dict.fromkeys(IN_GRAMMAR, "scalar") | registered


def name_of(node: exp.Expr | None) -> str | None:
    """Name in lower case of a function call; None for anything else."""
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate function."""
    return functions().get(name_of(node) or "") == "aggregate" and not isinstance(node.parent, exp.Window)


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether an aggregate function is called somewhere in an expression."""
    return any(is_aggregate(node) for node in tree.walk())


CAST_FUNCTIONS: Final = frozenset((
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp", "binary",
    "string",
))  # fmt: skip
"""Functions that are a CAST to the type of their name."""

UNIT_FUNCTIONS: Final = frozenset(["dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff"])
"""Functions whose first of three arguments is a unit of time, not a column."""

_WHY_NOT_IN_LOG: Final = {
    "its value is drawn anew in every run": "rand random randn randstr uniform uuid shuffle",
    "its value depends on how the work was split": (
        "monotonically_increasing_id spark_partition_id input_file_name input_file_block_start "
        "input_file_block_length python_worker_logs"
    ),
    "its value depends on who runs the query and where": (
        "current_user session_user user current_catalog current_database current_schema current_path "
        "current_timezone version java_method reflect try_reflect"
    ),
    "its value depends on the order in which tuples are met (use min or max)": (
        "first first_value last last_value any_value"
    ),
}
NOT_IN_LOG: Final = {name: why for why, names in _WHY_NOT_IN_LOG.items() for name in names.split()}
"""Functions whose value is not a function of the log, each with the reason."""


def arrival_form(name: str, arguments: int) -> exp.Expr | None:
    """What a function of the present time is on a stream: a function of the tuple's arrival.

    >>> arrival_form("now", 0).sql("spark")
    'TIMESTAMP_MICROS(__arrival)'
    """
    arrival = call("TIMESTAMP_MICROS", exp.column(ARRIVAL))
    if arguments:
        return None
    if name in ("now", "current_timestamp"):
        return arrival
    if name in ("current_date", "curdate"):
        return cast(arrival, "DATE")
    if name == "localtimestamp":
        return cast(arrival, "TIMESTAMP_NTZ")
    return call("UNIX_TIMESTAMP", arrival) if name == "unix_timestamp" else None


BARE_FUNCTIONS: Final = frozenset(
    ["current_date", "current_timestamp", "current_time", "localtimestamp", "current_user", "user", "session_user"]
)
"""Functions that may be called without parentheses where no column has their name, as in Spark."""
