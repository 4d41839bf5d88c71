"""What a source is: something that has tuples due at times, and a position to go on from after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshet.model import SegmentFile

END_OF_TIME: Final = 253_402_300_799.0
"""Seconds since the epoch (the end of the year 9999): the event time of a source that has come to its end."""


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that lie in segment files of the log already, and those that were set aside when they were written.

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
        rows: For the stream's intake: a table (columns may still be text), or rows as mappings and, where a row
            cannot even be divided into columns, as the text that it is, which makes it a dead letter; or
            :class:`Written`.
        arrivals: When each row came, microseconds since the epoch, nondecreasing.
        position: JSON-ready; a source restored from it goes on behind these rows.
        more: Whether more rows are due already, so that it is worth to poll at once.
    """

    rows: pa.Table | Sequence[Mapping[str, Any] | str] | Written
    arrivals: NDArray[np.int64]
    position: dict[str, Any]
    more: bool = False


class Source(Protocol):
    """Where the tuples of a stream come from.

    A source is used by one thread. Times are seconds of the wall clock. After :meth:`poll` has given a batch away the
    source is behind it: whoever polls keeps the batch until it is durable.
    """

    def restore(self, position: Mapping[str, Any]) -> None:
        """Goes on from the position of an earlier batch; called before the first poll, if at all."""

    def poll(self, now: float) -> Batch | None:
        """The rows that are due, not necessarily all of them; None: none is due."""

    def next_due(self) -> float | None:
        """When the next row is due: a time that has passed means now, infinity not known, None that none comes."""

    def close(self) -> None:
        """Lets go of files."""


@runtime_checkable
class EventClock(Protocol):
    """A source that knows what event time it is while no row comes, so that windows close all the same.

    It is asked only when no row is due. Without it, event time stands still until the next row.
    """

    def event_clock(self, now: float) -> float | None:
        """Event time at a time of the wall clock, in seconds as the event-time column counts them: rows that come
        later are judged late by it. None: not known."""
