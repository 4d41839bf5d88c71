"""What every operator answers for itself, so that nobody has to ask what kind it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from freshet.model.operators.fold import Call

Time = int | None
"""Event time in microseconds; None: no bound is known, which is less than every other."""
Acted = Callable[[int], Time]
"""How far event time has come, by port."""
Columns = tuple[tuple[str, str], ...]
"""Columns as (name, SQL expression)."""
Split = Literal["rows", "parts", "keys", "never"]
"""How the work on a train may be divided between tasks.

- ``rows``: each task takes some of the tuples.
- ``parts``: each task merges some of the tuples, and one task finishes.
- ``keys``: tuples with equal keys meet in one task, through a shuffle.
- ``never``: one task does all of it.
"""


class Typer(Protocol):
    """Knows the types of expressions: the checker of SQL, the kernels or Spark."""

    def columns(self, operator: str, columns: Columns, schema: pa.Schema) -> pa.Schema:
        """The columns of a projection over tuples of a schema."""

    def predicate(self, operator: str, predicate: str, schema: pa.Schema) -> None:
        """Refuses a predicate that is none over tuples of a schema."""

    def call(self, call: Call, schema: pa.Schema) -> pa.DataType:
        """The type of an aggregate over tuples of a schema."""


@dataclass(frozen=True, slots=True)
class Operator(ABC):
    """A box: takes tuples in at its ports and gives tuples out. It consists of plain values."""

    tag: ClassVar[str]
    """What people call it; it marks its stored form."""
    remembers: ClassVar[bool] = False
    """Whether it is a fold: what it gives out depends on tuples that came before."""

    name: str

    @property
    def split(self) -> Split:
        """How its work may be divided between tasks."""
        return "rows"

    @property
    def reads_table(self) -> str | None:
        """The table that it reads besides."""
        return None

    @abstractmethod
    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        """The columns that it gives out, the arrival apart, from those that come in at each port."""

    @abstractmethod
    def text(self) -> str:
        """What it does, in one line for people."""

    def state_text(self) -> str | None:
        """What it remembers, and for how long; None: nothing."""
        return None

    def watermark(self, before: Sequence[Time], acted: Acted) -> Time:
        """From when on the tuples are that are still to come out.

        Args:
            before: For each port, from when on the tuples are that are still to come in.
            acted: Says, by port, how far event time has come in what a fold has done.
        """
        return earliest(before)

    def is_due(self, seen: Sequence[Time], possible: Sequence[Time]) -> bool:
        """Whether the passing of time alone brings something out of what it remembers.

        Args:
            seen: How far event time had come at each port when it last ran.
            possible: How far it has come now.
        """
        return False


def earliest(times: Sequence[Time]) -> Time:
    """The least of some times.

    >>> earliest([3, 2]), earliest([3, None])
    (2, None)
    """
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


def latest(*times: Time) -> Time:
    """The greatest of some times.

    >>> latest(None, 3, 2)
    3
    """
    return max((time for time in times if time is not None), default=None)


def minus(time: Time, microseconds: int) -> Time:
    """A time before another."""
    return None if time is None else time - microseconds
