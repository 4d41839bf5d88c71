"""Folds: operators that remember. Their memory is a range of a log of their own, so that it is committed, replayed
and bounded like everything else that waits.

A fold works on plain columns. The projection in front of it computes its keys, arguments and times; filters and a
projection behind it turn what it outputs into what the query asks for. Times are columns of timestamps, or the
arrival where a column's name is None. Every input tuple is *valid* from its time until its window has passed it:
``[time, time + size)``, or up to a column that says so. That one idea carries windows, slides and joins: two tuples
join if they are valid at the same time, and a tuple counts at a boundary ``b`` if ``time < b <= until``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from freshet.model.operators.base import Operator, Split

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
class Fold(Operator):
    """An operator that remembers."""

    remembers: ClassVar[bool] = True

    @property
    def split(self) -> Split:
        return "never"

    @property
    def states(self) -> int:
        return 1

    @abstractmethod
    def state_text(self) -> str | None:
        """What it remembers, and for how long; None: nothing beyond one instance."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """From when until when the tuples of an input count, in microseconds.

    Args:
        time: Timestamp (or bigint of microseconds) column of the event time; None: the arrival.
        size: How long a tuple is valid; None: ``until`` says it.
        until: Column (bigint, microseconds) with the end of its validity.

    >>> Lifetime("ts", 60_000_000).text(), Lifetime("ts", 60_000_000).for_how_long()
    ('1 min of ts', 'for 1 min')
    """

    time: str | None
    size: int | None = None
    until: str | None = None

    def text(self) -> str:
        """What it is counted by, for people."""
        if self.size is None:
            return f"{self.time} to {self.until}"
        return f"{span_text(self.size)} of {self.time or 'arrival'}"

    def for_how_long(self) -> str:
        """How long a tuple is remembered, for people."""
        return f"until {self.until}" if self.size is None else f"for {span_text(self.size)}"


def span_text(microseconds: int) -> str:
    """A duration, exactly.

    >>> span_text(100_000_000), span_text(7_200_000_000), span_text(1_500)
    ('100 s', '2 h', '1500 us')
    """
    units = ((3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))
    size, unit = next((size, unit) for size, unit in units if microseconds % size == 0)
    return f"{microseconds // size} {unit}"


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate over a column.

    Args:
        output: Column that it outputs.
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
