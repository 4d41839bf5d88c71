"""The way of a stream into a join that goes by an ordered key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from freshet.model.operators.base import Operator, Typer
from freshet.model.plain_values import later


@dataclass(frozen=True, slots=True)
class Marked(Operator):
    """The tuples of a declared stream above the mark of its ordered key (WU §3.2.2).

    The log knows the offsets of those that are past the mark, and its trains leave them out. So all that come here
    pass. Behind it, what is called event time is the key: the marks of the stream take the place of its watermarks.

    Args:
        name: Its name.
        column: The ordered key.
        join: The join that it leads to, if that has a bound on its memory: then the tuples that this join lets go are
            left out, too.

    >>> Marked("q.join.left.marked", "epoch").text()
    'above the mark of epoch'
    """

    tag: ClassVar[str] = "marked"

    column: str
    join: str = later("")

    @property
    def keeps(self) -> str:
        return "true"

    @property
    def ordered_by(self) -> str:
        return self.column

    @property
    def bounded_by(self) -> str:
        return self.join

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return inputs[0]

    def text(self) -> str:
        bound = f", as far as the memory of {self.join} reaches" if self.join else ""
        return f"above the mark of {self.column}{bound}"
