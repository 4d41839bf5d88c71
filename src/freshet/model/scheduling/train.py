"""Segments and trains: ranges of a log."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.model.promises.keep import Keep


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable run of consecutive tuples of one stream: a byte range of a file that holds an Arrow IPC stream.

    Several segments of different streams may share one file: a step writes one file for all its members.
    """

    stream: str
    first: int
    rows: int
    sequence: int
    """Place in the one append sequence over all streams."""
    arrival: int
    """Arrival of its first tuple, microseconds since the epoch."""
    last_arrival: int
    file: str
    position: int
    length: int

    @property
    def end(self) -> int:
        """The offset after the last tuple."""
        return self.first + self.rows


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file that was written and is not yet in the log; ``members`` are (stream, rows, position, length, first
    arrival, last arrival). The log gives offsets and sequence numbers when it takes the file in, and syncs it before if
    it is not ``synced``."""

    name: str
    bytes: int
    members: tuple[tuple[str, int, int, int, int, int], ...]
    synced: bool = True


@dataclass(frozen=True, slots=True)
class Train:
    """The range [first, end) of a stream, about to be processed; ``segments`` are those that overlap it.

    If ``keep`` is set, only some of its tuples are processed, but the cursor moves over all of them.

    >>> Train("s", 10, 30).rows
    20
    """

    stream: str
    first: int
    end: int
    segments: tuple[Segment, ...] = ()
    keep: Keep | None = None

    @property
    def rows(self) -> int:
        """How many tuples it holds."""
        return self.end - self.first
