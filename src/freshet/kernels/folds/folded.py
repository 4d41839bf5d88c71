"""What a compiled fold is, and what a run of it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

Watermarks = Sequence[int | None]
"""For each port a lower bound, in microseconds, on the event times of the tuples that did not run yet; None: none."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What a run of a fold gave out and what it does to its state.

    Args:
        output: The rows that it gives out, with the arrival as last column.
        appended: New rows of each state stream.
        dropped: Rows that go from the low end of each state stream, of those that were there before the run.
        errors: Results that overflowed; they are NULL.
    """

    output: pa.Table
    appended: tuple[pa.Table, ...]
    dropped: tuple[int, ...]
    errors: int = 0


class CompiledFold(Protocol):
    """A fold for tuples of a known schema; it remembers nothing between runs."""

    @property
    def output(self) -> pa.Schema:
        """Columns that it gives out, the arrival apart."""

    @property
    def states(self) -> tuple[pa.Schema, ...]:
        """Schemas of its state streams, the arrival last."""

    def run(
        self, table: pa.Table, states: Sequence[pa.Table], before: Watermarks, after: Watermarks, port: int = 0
    ) -> Folded:
        """Folds some tuples of one input in.

        Args:
            table: The input columns and the arrival; it may have no rows.
            states: Live rows of each state stream, in their order.
            before: The watermarks when the previous run ended.
            after: The watermarks once these tuples have run.
            port: Which input the tuples come from.
        """

    def merged(self, number: int, rows: pa.Table) -> pa.Table:
        """The rows of a state stream, those in one that can be; it is asked for when they are written anew."""

    def due(self, states_nonempty: bool, before: Watermarks, after: Watermarks) -> bool:
        """Whether a run without tuples could give something out."""
