"""What happens when: the steps of a log with their times, and what the streams hold then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.engine.grammar.logs import STREAMS, Expected, Row, Step


@dataclass(frozen=True, slots=True)
class Append:
    """Rows come to a stream."""

    stream: str
    rows: list[Row]
    arrival: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A stream tells that time has passed."""

    stream: str
    time: int


@dataclass(frozen=True, slots=True)
class Turns:
    """The engine may do something."""

    count: int


Moment = Append | Heartbeat | Turns | None
"""What a step comes to; None: nothing, as where rows come again and there were none before."""


def moments(steps: Sequence[Step], start: int) -> Iterator[Moment]:
    """One for each step; times are microseconds."""
    clock, arrival = start, max(start, 0)
    last: Append | None = None
    for what, stream, gap, more in steps:
        clock += gap
        arrival += gap
        if what == "turns":
            yield Turns(more)
        elif what == "heartbeat":
            yield Heartbeat(stream, clock if STREAMS[stream].event_time else arrival)
        elif what == "append":
            last = Append(stream, _rows(stream, clock, more), arrival)
            yield last
        else:
            yield None if last is None else Append(last.stream, last.rows, arrival)


def _rows(stream: str, clock: int, rows: Sequence[tuple[int, Row]]) -> list[Row]:
    timed = STREAMS[stream].event_time is not None
    times: list[list[Any]] = [[clock + at] if timed else [] for at, _ in rows]
    return [(*time, *values) for time, (_, values) in zip(times, rows, strict=True)]


def contents(steps: Sequence[Step], start: int) -> dict[str, Expected]:
    """What each stream should hold after all steps."""
    held = {name: Expected(stream) for name, stream in STREAMS.items()}
    for moment in moments(steps, start):
        if isinstance(moment, Append):
            held[moment.stream].append(moment.rows, moment.arrival)
        elif isinstance(moment, Heartbeat):
            held[moment.stream].heartbeat(moment.time)
    return held
