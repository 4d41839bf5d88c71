"""What every operator answers for itself, so that nobody has to ask what kind it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, Self

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

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        """The columns behind a plain operator over tuples of a schema; refuses expressions that have no type."""

    def call(self, call: Call, schema: pa.Schema) -> pa.DataType:
        """The type of an aggregate over tuples of a schema."""


@dataclass(frozen=True, slots=True)
class Operator(ABC):
    """A box: takes tuples in at its ports and gives tuples out. It consists of plain values."""

    tag: ClassVar[str]
    """What people call it; it marks its stored form."""
    remembers: ClassVar[bool] = False
    """Whether it is a fold: what it outputs depends on tuples that came before."""

    name: str

    @property
    def keeps(self) -> str | None:
        """The predicate that a tuple must meet to pass; None: all pass, or it works in another way."""
        return None

    @property
    def makes(self) -> Columns | None:
        """The columns that it computes of each tuple; None: it leaves them as they are, or works in another way."""
        return None

    @property
    def plain(self) -> bool:
        """Whether expressions over one tuple say all that it does, so that either physical form can run it."""
        return self.keeps is not None or self.makes is not None

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions that a plain operator evaluates of each tuple."""
        return (self.keeps,) if self.keeps is not None else tuple(text for _, text in self.makes or ())

    def rewritten(self, change: Callable[[str], str]) -> Operator:
        """The same operator with each of its expressions changed."""
        return self

    @property
    def goes_by_time(self) -> bool:
        """Whether event time decides what it outputs."""
        return self.remembers

    @property
    def states(self) -> int:
        """Number of state streams that hold what it remembers."""
        return 0

    @property
    def split(self) -> Split:
        """How its work may be divided between tasks."""
        return "rows"

    @property
    def split_keys(self) -> tuple[tuple[str, ...], ...]:
        """For each port the columns by which its tuples, and all that it remembers, can be divided into parts that
        never meet; empty: nothing divides them."""
        return ()

    @property
    def ordered(self) -> bool:
        """Whether what it remembers by key is worked on in the order of all tuples, so that readers may count on the
        order of its output. Tasks that have some keys each would break it: one task runs such an operator."""
        return False

    @property
    def ordered_by(self) -> str | None:
        """The ordered key whose marks take the place of event time at it and behind it; None: event time stays."""
        return None

    @property
    def bounded_by(self) -> str:
        """The join behind it whose bound on its memory leaves tuples out at it; empty: there is none."""
        return ""

    @property
    def reads_table(self) -> str | None:
        """The table that it reads besides."""
        return None

    @abstractmethod
    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        """The columns that it outputs, without the arrival, from those that come in at each port."""

    @abstractmethod
    def text(self) -> str:
        """What it does, in one line for people."""

    def state_text(self) -> str | None:
        """What it remembers, and for how long; None: nothing."""
        return None

    def called(self, name: str) -> Self:
        """The same operator under another name. Two that are equal under the same name are the same work."""
        return replace(self, name=name)

    def watermark(self, before: Sequence[Time], acted: Acted) -> Time:
        """A lower bound on the event times of tuples that are still to come out, from those of tuples that are still to
        come in at each port. For a fold, ``acted`` says how far it has acted on event time, by port."""
        return earliest(before)

    def next_close(self, time: Time) -> Time:
        """The event time at which its next window closes, from an event time on; None: none does, or it is unknown."""
        return None

    def with_changes(self) -> Operator | None:
        """The same operator, but it outputs its rows at each change; None: it holds none back."""
        return None

    def is_due(self, seen: Sequence[Time], possible: Sequence[Time]) -> bool:
        """Whether the passing of time alone makes it output something that it remembers. Event time, by port, was
        ``seen`` when it last ran, and is ``possible`` now."""
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
    """An earlier time."""
    return None if time is None else time - microseconds
