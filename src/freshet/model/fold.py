"""Folds: operators that remember. Their memory is a range of a log of their own, so that it is committed, replayed
and bounded like everything else that waits.

A fold works on plain columns: the projection in front of it has computed its keys, arguments and times, filters and a
projection behind it compute what the query asks for from what it gives out. Times are columns of timestamps, or the
arrival where a column's name is None. Every input tuple is *valid* from its time until its window has passed it:
``[time, time + size)``, or up to a column that says so. That one idea carries windows, slides and joins: two tuples
join if they are valid at the same time, and a tuple counts at a boundary ``b`` if ``time < b <= until``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

WINDOW_START: Final = "__window_start"
"""Timestamp column that :class:`Panes` gives out: the first moment of the window."""
WINDOW_END: Final = "__window_end"
"""Timestamp column that :class:`Panes` gives out: the boundary, first moment after the window."""
FROM: Final = "__from"
"""Column (bigint, microseconds) that a :class:`Side` gives out: since when a pair is valid."""
UNTIL: Final = "__until"
"""Column (bigint, microseconds) that a :class:`Side` gives out: until when a pair is valid."""

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
    """

    output: str
    function: AggregateFunction
    column: str | None = None
    parameter: float | None = None


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when the tuples of an input count, in microseconds.

    Args:
        time: Timestamp (or bigint of microseconds) column of the event time; None: the arrival.
        size: How long a tuple is valid; None: ``until`` says it.
        until: Column (bigint, microseconds) with the end of its validity.
    """

    time: str | None
    size: int | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Panes:
    """Aggregates at boundaries: one row for each group and boundary at which a tuple of it is valid.

    Boundaries are the multiples of ``slide`` since the epoch, ``offset`` microseconds later. Gives out the keys, the
    calls, :data:`WINDOW_START` and :data:`WINDOW_END`. A boundary's rows come when no tuple before it can come any more
    (``closed``), with ``changes`` also each time that a step changed them.
    """

    name: str
    validity: Validity
    slide: int
    keys: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    emit: Literal["closed", "changes"] = "closed"
    offset: int = 0

    @property
    def fold(self) -> str:
        """Whose state it is."""
        return self.name


@dataclass(frozen=True, slots=True)
class Moving:
    """Aggregates for each tuple over the tuples before it, itself included: one row for each tuple.

    With ``size`` it looks at event times in (time - size, time] of what came up to the tuple's offset, with ``rows`` at
    the last so many tuples of its partition; with neither at all of them, which only a query without keys may do.
    Only tuples with equal keys count. Gives out the columns ``carried`` and the calls.
    """

    name: str
    time: str | None
    size: int | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    carried: tuple[str, ...] = ()

    @property
    def fold(self) -> str:
        """Whose state it is."""
        return self.name


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join; the two sides of a join share its state and differ only in ``port`` and ``name``.

    Tuples join if their keys are equal (NULL equals nothing; no keys: all do) and they are valid at the same time.
    A pair comes when the later of its two tuples is processed, whichever that is. A left tuple of a left join that
    found nobody comes with NULLs when no partner can come any more.

    Args:
        name: ``<fold>.left`` or ``<fold>.right``.
        fold: Whose state it is.
        port: 0 for the left input, 1 for the right one.
        kind: Of the join.
        validity: Of the tuples of the left and the right input.
        keys: Columns of the left and of the right input that must be equal, in pairs.
        columns: What it gives out, as (name, port, column of that input), before :data:`FROM` and :data:`UNTIL`.
        behind: By how many microseconds the times of what it gives out may lie behind the watermark of the left and of
            the right input: its own watermark is the least of ``watermark - behind``. The times are those that whoever
            reads it goes by: :data:`FROM`, or the column that carries the event time.
    """

    name: str
    fold: str
    port: Literal[0, 1]
    kind: Literal["inner", "left"]
    validity: tuple[Validity, Validity]
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    columns: tuple[tuple[str, Literal[0, 1], str], ...]
    behind: tuple[int, int] = (0, 0)


Fold = Panes | Moving | Side
"""An operator that remembers."""


def state_stream(fold: str, number: int) -> str:
    """Name of a state stream of a fold, counted from 0.

    >>> state_stream("q.panes", 0), state_stream("q.panes", 1)
    ('q.panes.state', 'q.panes.state_2')
    """
    return f"{fold}.state" if number == 0 else f"{fold}.state_{number + 1}"


def is_state_of(stream: str, fold: str) -> bool:
    """Whether a stream is a state stream of a fold.

    >>> is_state_of("q.panes.state_2", "q.panes"), is_state_of("q.panes.state", "q")
    (True, False)
    """
    return is_state(stream) and stream.rpartition(".")[0] == fold


def is_state(stream: str) -> bool:
    """Whether a stream is a state stream.

    >>> is_state("q.panes.state"), is_state("q.project")
    (True, False)
    """
    kind = stream.rpartition(".")[2]
    return "." in stream and (kind == "state" or kind.startswith("state_"))


def fold_fields(operator: Fold) -> dict[str, Any]:
    """A fold as plain values, for JSON.

    >>> read_fold(fold_fields(Panes("q.panes", Validity("ts", 60), 60, ("k",), (Call("n", "count"),)))).calls
    (Call(output='n', function='count', column=None, parameter=None),)
    """
    return {"fold_type": type(operator).__name__, **asdict(operator)}


def read_fold(fields: Mapping[str, Any]) -> Fold:
    """The fold of plain values."""
    values = {name: _tuples(value) for name, value in fields.items() if name != "fold_type"}
    if "calls" in fields:
        values["calls"] = tuple(Call(**call) for call in fields["calls"])
    if fields["fold_type"] == "Moving":
        return Moving(**values)
    if fields["fold_type"] == "Panes":
        return Panes(**{**values, "validity": Validity(**fields["validity"])})
    left, right = (Validity(**each) for each in fields["validity"])
    return Side(**{**values, "validity": (left, right)})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list | tuple) else value
