"""What a log is given and what it reports."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class KeyNews:
    """What an append says about the order of a stream by its key.

    Args:
        mark: The key mark after it; None: there is none yet.
        past: Places, among the appended tuples, of those that came past the mark.
        disorder: What is known of the disorder after it, packed.
    """

    mark: int | None
    past: tuple[int, ...]
    disorder: bytes
