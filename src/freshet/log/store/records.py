"""What a log is given and what it tells."""

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
    heartbeats: int
    held_back: str | None


@dataclass(frozen=True, slots=True)
class LogMeters:
    """Meters of a log."""

    streams: dict[str, StreamMeter]
    files: int
    segments: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A watermark, an entry of the append sequence: no tuple at or behind the offset is from before the time."""

    sequence: int
    offset: int
    time: int


@dataclass(frozen=True, slots=True)
class Loss:
    """An entry of the ledger: a reader that was quarantined or parked will never see this range."""

    reader: str
    stream: str
    first: int
    end: int
    why: str
    time: int
