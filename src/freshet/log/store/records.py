"""What a log is given and what it reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freshet.quality.disorder import Disorder


@dataclass(frozen=True, slots=True)
class StreamMeter:
    """What a stream holds and what happened to its input."""

    oldest: int
    end: int
    bytes: int
    waiting_bytes: int
    dead: int
    late: int
    past: int
    heartbeats: int
    held_back: str | None


@dataclass(frozen=True, slots=True)
class LogMeters:
    """Meters of a log."""

    streams: dict[str, StreamMeter]
    files: int
    segments: int


@dataclass(frozen=True, slots=True)
class HeartbeatRecord:
    """A watermark, an entry of the append sequence: no tuple at or behind the offset is older than the time."""

    sequence: int
    offset: int
    time: int


@dataclass(frozen=True, slots=True, eq=False)
class KeyMoves:
    """The ordered keys of appended tuples.

    Args:
        keys: The keys, as numbers.
        sizes: The bytes of each tuple, as far as they differ from tuple to tuple.
        marks: The key mark of the stream after each of them.
        before: What was known of the disorder before them.
        after: The same after them.
    """

    keys: NDArray[np.int64]
    sizes: NDArray[np.int64]
    marks: NDArray[np.int64]
    before: Disorder
    after: Disorder


@dataclass(frozen=True, slots=True)
class KeyNews:
    """What an append says about the order of a stream by its key.

    Args:
        mark: The key mark after it; None: there is none yet.
        past: Places, among the appended tuples, of those that came past the mark.
        disorder: What is known of the disorder after it, packed.
        moves: The keys; None: no tuples came.
    """

    mark: int | None
    past: tuple[int, ...]
    disorder: bytes
    moves: KeyMoves | None = None
