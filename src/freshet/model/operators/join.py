"""Joins of streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import pyarrow as pa

from freshet.model.operators.base import Acted, Split, Time, Typer, earliest, minus
from freshet.model.operators.fold import Fold, Lifetime

FROM: Final = "__from"
"""Column (bigint, microseconds) that a join gives out: since when a pair is valid."""
UNTIL: Final = "__until"
"""Column (bigint, microseconds) that a join gives out: until when a pair is valid."""

Port = Literal[0, 1]


@dataclass(frozen=True, slots=True)
class Join(Fold):
    """Pairs of tuples of its two inputs.

    Tuples join if their keys are equal (NULL equals nothing; no keys: all do) and they are valid at the same time.
    A pair comes when the later of its two tuples is processed, whichever that is. A left tuple of a left join that
    found nobody comes with NULLs when no partner can come any more.

    Args:
        name: Whose state it is.
        kind: Of the join.
        validity: Of the tuples of the left and the right input.
        keys: Columns of the left and of the right input that must be equal, in pairs.
        columns: What it gives out, as (name, port, column of that input), before :data:`FROM` and :data:`UNTIL`.
        behind: By how many microseconds the times of what it gives out may lie behind the watermark of the left and of
            the right input: its own watermark is the least of ``watermark - behind``. The times are those that whoever
            reads it goes by: :data:`FROM`, or the column that carries the event time.
    """

    tag: ClassVar[str] = "join"

    kind: Literal["inner", "left"]
    validity: tuple[Lifetime, Lifetime]
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    columns: tuple[tuple[str, Port, str], ...]
    behind: tuple[int, int] = (0, 0)

    @property
    def split(self) -> Split:
        return "keys"

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        columns = [(name, inputs[port].field(column).type) for name, port, column in self.columns]
        return pa.schema([*columns, (FROM, pa.int64()), (UNTIL, pa.int64())])

    def watermark(self, before: Sequence[Time], acted: Acted) -> Time:
        times = [minus(time, behind) for time, behind in zip(before, self.behind, strict=True)]
        # A left tuple without a partner comes when the right side's time has acted.
        return earliest(times if self.kind == "inner" else [*times, minus(acted(1), self.behind[1])])

    def is_due(self, seen: Sequence[Time], possible: Sequence[Time]) -> bool:
        return self.kind == "left" and possible[1] != seen[1]

    def text(self) -> str:
        kind = "LEFT JOIN" if self.kind == "left" else "JOIN"
        on = " AND ".join(f"left.{one} = right.{two}" for one, two in zip(*self.keys, strict=True))
        left, right = (f"{'from' if each.size is None else 'for'} {each.text()}" for each in self.validity)
        return f"{kind} {f'ON {on}' if on else 'without equal columns'}, left valid {left}, right {right}"

    def state_text(self) -> str:
        left, right = (each.for_how_long() for each in self.validity)
        outer = ", and which of the left ones found no partner" if self.kind == "left" else ""
        return f"left tuples {left}, right tuples {right}{outer}"
