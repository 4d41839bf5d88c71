"""Aggregates over columns, as folds compute them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

AggregateFunction = Literal[
    "count",
    "count_distinct",
    "sum",
    "avg",
    "min",
    "max",
    "stddev_samp",
    "stddev_pop",
    "var_samp",
    "var_pop",
    "approx_percentile",
]


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate over a column.

    Args:
        output: Column that it gives out.
        function: What it computes, with Spark's types and treatment of NULL.
        column: Its argument; None: ``count(*)``.
        parameter: Of ``approx_percentile``: the share in [0, 1].

    >>> Call("n", "count_distinct", "host").text()
    'count(DISTINCT host) AS n'
    """

    output: str
    function: AggregateFunction
    column: str | None = None
    parameter: float | None = None

    def text(self) -> str:
        """For people."""
        share = "" if self.parameter is None else f", {self.parameter:g}"
        column = self.column or "*"
        if self.function == "count_distinct":
            return f"count(DISTINCT {column}) AS {self.output}"
        return f"{self.function}({column}{share}) AS {self.output}"


def called_text(keys: Sequence[str], calls: Sequence[Call]) -> str:
    """The keys and calls of a fold, for people.

    >>> called_text(["host"], [Call("n", "count")])
    ', for each host: count(*) AS n'
    """
    group = f", for each {', '.join(keys)}" if keys else ""
    return f"{group}: {', '.join(call.text() for call in calls) or 'once'}"
