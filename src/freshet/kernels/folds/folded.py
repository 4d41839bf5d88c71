"""The protocols of compiled operators, and the result of a run of a fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from freshet.model import Operator

if TYPE_CHECKING:
    from freshet.kernels.table_join import Version

Watermarks = Sequence[int | None]
"""For each port a lower bound, in microseconds, on the event times of tuples that are still to come; None: no bound."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The output of a run of a fold, and the changes of its state.

    Args:
        output: The rows that it gives out, with the arrival as last column.
        appended: New rows of each state stream.
        dropped: Number of rows from before the run to drop from the low end of each state stream.
        errors: Number of results that overflowed; they are NULL.
    """

    output: pa.Table
    appended: tuple[pa.Table, ...]
    dropped: tuple[int, ...]
    errors: int = 0


class CompiledRows(Protocol):
    """An operator without a state that needs more than expressions, for tuples of a known schema."""

    @property
    def output(self) -> pa.Schema:
        """Columns that it gives out, without the arrival."""

    def run(self, table: pa.Table, versions: Sequence[Version]) -> tuple[pa.Table, int]:
        """The rows that it makes of tuples, in their order, and the number of evaluation errors.

        Args:
            table: The input columns and the arrival; it may have no rows.
            versions: The versions that are kept of the table that it reads, in order.
        """


class LiveFold(Protocol):
    """A fold with what it remembers. It never changes: a run gives the fold as it is then, and both can go on."""

    @property
    def rows(self) -> int:
        """Number of rows that it remembers."""

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""

    def run(self, table: pa.Table, before: Watermarks, after: Watermarks, port: int = 0) -> tuple[Folded, LiveFold]:
        """Folds some tuples of one input in.

        Args:
            table: The input columns and the arrival; it may have no rows.
            before: The watermarks when the previous run ended.
            after: The watermarks once these tuples have run.
            port: Which input the tuples come from.
        """

    def moved(self, dropped: Sequence[int], appended: Sequence[pa.Table]) -> LiveFold:
        """The fold after changes of its state streams that others made: rows dropped, and then rows appended."""

    def gathered(self, number: int) -> tuple[pa.Table, LiveFold]:
        """The rows of a state stream, merged as far as possible, and the fold that remembers them so."""


class CompiledFold(Protocol):
    """A fold for tuples of a known schema; it remembers nothing itself."""

    @property
    def operator(self) -> Operator:
        """What it was compiled from."""

    @property
    def output(self) -> pa.Schema:
        """Columns that it gives out, without the arrival."""

    @property
    def states(self) -> tuple[pa.Schema, ...]:
        """Schemas of its state streams, with the arrival as last column."""

    @property
    def state_keys(self) -> tuple[str, ...]:
        """Columns of each state stream that hold the keys by which the fold can be divided, as the operator's
        ``split_keys`` says; empty: it cannot be."""

    def live(self, states: Sequence[pa.Table]) -> LiveFold:
        """The fold with what it remembers: the live rows of each state stream, in their order."""


@runtime_checkable
class OrderedFold(Protocol):
    """A compiled fold that answers tuple by tuple, in their order: its operator is ``ordered``."""

    def answered(self, table: pa.Table) -> pa.Table:
        """The tuples that it answers, of those that it is given: for each of them one row."""
