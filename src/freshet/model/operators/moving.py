"""Aggregates with each tuple over the tuples before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from freshet.model.operators.base import Typer
from freshet.model.operators.fold import Call, Fold, called_text, span_text


@dataclass(frozen=True, slots=True)
class Moving(Fold):
    """Aggregates for each tuple over the tuples before it, itself included: one row for each tuple.

    With ``size`` it looks at event times in (time - size, time] of what came up to the tuple's offset, with ``rows`` at
    that number of last tuples of its partition. With neither it looks at all tuples, which only a query without keys
    may do. Only tuples with equal keys count. Gives out the columns ``carried`` and the calls.

    >>> Moving("q.m", None, rows=5, partition=("k",)).state_text()
    'the last 5 tuples of each k'
    """

    tag: ClassVar[str] = "moving"

    time: str | None
    size: int | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    carried: tuple[str, ...] = ()

    @property
    def goes_by_time(self) -> bool:
        return self.size is not None

    @property
    def split_keys(self) -> tuple[tuple[str, ...], ...]:
        # Windows of ROWS count the tuples of a partition, whatever their keys are.
        keys = self.partition if self.rows is not None else self.keys
        return (keys,) if keys else ()

    @property
    def ordered(self) -> bool:
        # It answers tuple by tuple, and windows of ROWS over its answers go by their order.
        return True

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        schema = inputs[0]
        carried = [(name, schema.field(name).type) for name in self.carried]
        return pa.schema([*carried, *((call.output, typer.call(call, schema)) for call in self.calls)])

    def text(self) -> str:
        if self.rows is not None:
            over = f"the last {self.rows} tuples" + (f" of its {', '.join(self.partition)}" if self.partition else "")
        elif self.size is not None:
            over = f"the last {span_text(self.size)} of {self.time or 'arrival'}"
        else:
            over = "all tuples so far"
        return f"with each tuple over {over}{called_text(self.keys, self.calls)}"

    def state_text(self) -> str:
        if self.rows is not None:
            return f"the last {self.rows} tuples" + (f" of each {', '.join(self.partition)}" if self.partition else "")
        if self.size is not None:
            return f"the tuples of the last {span_text(self.size)}"
        return "one partial answer of all tuples so far"
