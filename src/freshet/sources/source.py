"""What a source is: it has tuples that are due at certain times, and a position to continue from after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshet.model import SegmentFile

if TYPE_CHECKING:
    from freshet.log.readable import Readable

END_OF_TIME: Final = 253_402_300_799.0
"""Seconds since the epoch (the end of the year 9999): the event time of a source that has ended."""


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that already lie in segment files of the log, and those that were set aside when they were written.

    Args:
        files: The files.
        newest: Newest event time in them, in microseconds.
        dead: Dead letters.
        late: Late rows.
    """

    files: tuple[SegmentFile, ...]
    newest: int | None = None
    dead: tuple[dict[str, Any], ...] = ()
    late: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that have come.

    Args:
        rows: For the stream's intake: a table (columns may still be text), or a list of rows as mappings, or
            :class:`Written`. In a list, a row that cannot be split into columns is its text; it becomes a dead
            letter.
        arrivals: When each row came, in microseconds since the epoch, nondecreasing.
        position: JSON-ready; a source restored from it continues behind these rows.
        more: Whether more rows are already due, so that it pays to poll at once.
        records: What the source remembers from now on besides its position, JSON-ready, by its keys; None for what it
            forgets. What is not named stays. See :class:`Remembering`.
    """

    rows: pa.Table | Sequence[Mapping[str, Any] | str] | Written
    arrivals: NDArray[np.int64]
    position: dict[str, Any]
    more: bool = False
    records: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Where the tuples of a stream come from.

    One thread uses a source. Times are seconds of the wall clock. Once :meth:`poll` has returned a batch, the
    source is behind it: the caller keeps the batch until it is durable.
    """

    def restore(self, position: Mapping[str, Any]) -> None:
        """Continues from the position of an earlier batch; called before the first poll, if at all."""

    def poll(self, now: float) -> Batch | None:
        """The rows that are due, not necessarily all of them; None if none is due."""

    def next_due(self) -> float | None:
        """When the next row is due: a past time means now, infinity means unknown, None means that no more come."""

    def close(self) -> None:
        """Closes files."""


@runtime_checkable
class Checkable(Protocol):
    """A source that ``freshet check`` asks, too, before it is used."""

    def check(self) -> None:
        """Checks what can be checked without reading rows.

        Raises:
            UserError: Something is not right.
        """


@runtime_checkable
class EventClock(Protocol):
    """A source that knows the event time while no row comes, so that windows close all the same.

    It is asked only when no row is due. Without it, event time stands still until the next row.
    """

    def event_clock(self, now: float) -> float | None:
        """Event time at a time of the wall clock, in seconds as the event-time column counts them. It decides whether
        later rows are late. None if unknown."""


@runtime_checkable
class Remembering(Protocol):
    """A source that remembers many single things. What changes is stored with the rows of a batch, in the same
    transaction, without writing the rest anew."""

    def recall(self, records: Mapping[str, Any]) -> None:
        """Everything that it remembered in earlier batches, by key; called before the first poll, if there is any."""


@runtime_checkable
class LogReading(Protocol):
    """A source that reads streams of the log itself, such as the output of a query."""

    def read_from(self, log: Readable) -> None:
        """Says where; called before the first poll."""
