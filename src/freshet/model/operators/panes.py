"""Aggregates at the boundaries of sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import pyarrow as pa

from freshet.model.operators.base import Acted, Split, Time, Typer, latest
from freshet.model.operators.fold import Call, Fold, Lifetime, called_text, span_text

WINDOW_START: Final = "__window_start"
"""Timestamp column that :class:`Panes` outputs: the first moment of the window."""
WINDOW_END: Final = "__window_end"
"""Timestamp column that :class:`Panes` outputs: the boundary, first moment after the window."""

_DETAILS: Final = {"count_distinct": "the different values of", "approx_percentile": "a sketch of"}


@dataclass(frozen=True, slots=True)
class Panes(Fold):
    """Aggregates at boundaries: one row for each group and boundary at which a tuple of it is valid.

    Boundaries are the multiples of ``slide`` since the epoch, ``offset`` microseconds later. Gives out the keys, the
    calls, :data:`WINDOW_START` and :data:`WINDOW_END`. A boundary's rows come when no tuple from before it can come any
    more (``closed``), with ``changes`` also each time that a step has changed them.

    >>> minute = Panes("q.aggregate", Lifetime("ts", 60), 60)
    >>> minute.boundary(125), minute.boundary(-1)
    (120, -60)
    """

    tag: ClassVar[str] = "panes"

    validity: Lifetime
    slide: int
    keys: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    emit: Literal["closed", "changes"] = "closed"
    offset: int = 0

    @property
    def split(self) -> Split:
        # EMIT CHANGES shows what a train has changed, and so must see all of it at once.
        return "never" if self.emit == "changes" else "parts"

    @property
    def split_keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.keys,) if self.keys else ()

    @property
    def states(self) -> int:
        return 1 + len(self._details)

    @property
    def _details(self) -> set[str]:
        """What it keeps in state streams of their own, for people."""
        return {f"{_DETAILS[call.function]} {call.column}" for call in self.calls if call.function in _DETAILS}

    def boundary(self, time: Time) -> Time:
        """The last boundary that is closed."""
        return None if time is None else (time - self.offset) // self.slide * self.slide + self.offset

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        schema = inputs[0]
        time = self.validity.time
        bound = pa.timestamp("us", tz="UTC") if time is None else schema.field(time).type
        bound = bound if pa.types.is_timestamp(bound) else pa.timestamp("us", tz="UTC")
        keys = [(key, schema.field(key).type) for key in self.keys]
        calls = [(call.output, typer.call(call, schema)) for call in self.calls]
        return pa.schema([*keys, *calls, (WINDOW_START, bound), (WINDOW_END, bound)])

    def watermark(self, before: Sequence[Time], acted: Acted) -> Time:
        return self.boundary(acted(0))

    def next_close(self, time: Time) -> Time:
        closed = self.boundary(time)
        return None if closed is None or self.emit == "changes" else closed + self.slide

    def with_changes(self) -> Panes:
        return replace(self, emit="changes")

    def is_due(self, seen: Sequence[Time], possible: Sequence[Time]) -> bool:
        closed = self.boundary(seen[0])
        return latest(self.boundary(possible[0]), closed) != closed

    def text(self) -> str:
        changes = ", told at every change" if self.emit == "changes" else ""
        later = f", {span_text(self.offset)} later," if self.offset else ""
        called = called_text(self.keys, self.calls)
        if self._is_batch:
            return f"over all that an instance sees{called}"
        return f"every {span_text(self.slide)}{later} over {self.validity.text()}{called}{changes}"

    @property
    def _is_batch(self) -> bool:
        """Whether it runs over what an instance of a periodic query sees, and remembers nothing for the next one."""
        return self.slide == 1 and self.validity.size is None

    def state_text(self) -> str | None:
        if self._is_batch:
            return None
        group = f" of each {', '.join(self.keys)}" if self.keys else ""
        more = "".join(f" and {detail}" for detail in sorted(self._details))
        return f"a partial answer{group}{more} for every {span_text(self.slide)}, {self.validity.for_how_long()}"
