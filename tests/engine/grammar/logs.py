"""Logs at random, with late, equal and doubled tuples, idle stretches, NULLs, NaN and infinities; and what is kept."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.engine.grammar.forms import SECOND, Named, Shape

from freshet.model import Stream, parse_schema

SCHEMA = parse_schema("ts timestamp, k string, g int, v int, x double")
STREAMS = {
    "s": Stream("s", SCHEMA, "ts", "UTC", None, 3.0),
    "t": Stream("t", SCHEMA, "ts", "UTC", None, 1.0),
    "u": Stream("u", SCHEMA, "ts", "UTC", None, 0.0),
    "w": Stream("w", SCHEMA.remove(0)),
}
_VALUES: Any = (("k", "text"), ("g", "int"), ("v", "int"), ("x", "float"))
NAMED = [
    *(Named(name, Shape((("ts", "time"), *_VALUES), "event", ("ts",), ordered=True)) for name in "stu"),
    Named("w", Shape(_VALUES, "arrival", (), ordered=True)),
]
END = 100_000 * SECOND
"""A time after everything."""

Row = tuple[Any, ...]

_TIMES = (0, 0, 1, 1, 2, -1, -1, -2, -4, 3)
_VALUES_OF = {
    "k": ("a", "a", "a", "a", "b", "b", "ab", "7", None),
    "g": (1, 1, 1, 2, None),
    "v": (0, 1, 2, 3, 4, 5, -1, -3, None),
    "x": (0.5, 1.25, 0.0, -0.0, -2.5, 4.0, None, float("nan"), float("inf"), float("-inf")),
}
_KINDS = ("append",) * 8 + ("again", "heartbeat", "turns", "turns")

Step = tuple[str, str, int, Any]
"""What happens: ``(what, stream, time that passes before it, more)``."""


def log(draw: random.Random, streams: int) -> list[Step]:
    """What comes to so many streams.

    They come by turns and for themselves, at times with long idle stretches, out of order and too late, with equal
    times and the same rows again.
    """
    size, width = (draw.randint(1, 14), 3) if draw.random() < 0.1 else (draw.randint(16, 30), 8)
    return [_step(draw, width, "stuw"[:streams]) for _ in range(size)]


def _step(draw: random.Random, width: int, streams: str) -> Step:
    what = draw.choice(_KINDS)
    gap = draw.choice((0, 0, 0, 0, 0, 1, 1, 2) if draw.random() < 0.96 else (60, 9)) * SECOND
    if what == "append":
        rows = [_row(draw) for _ in range(draw.randint(1, width))]
        return what, draw.choice(streams), gap, rows
    if what == "turns":
        return what, "", 0, draw.randint(1, 8)
    return what, draw.choice(streams) if what == "heartbeat" else "", gap, None


def _row(draw: random.Random) -> tuple[int, Row]:
    """A time relative to the clock, and values."""
    fraction = draw.choice((0, 0, 0, 0, 500_000, 1, -1))
    return draw.choice(_TIMES) * SECOND + fraction, tuple(draw.choice(some) for some in _VALUES_OF.values())


@dataclass
class Expected:
    """What a stream should hold, by its definition.

    Args:
        stream: The stream.
    """

    stream: Stream
    rows: list[Row] = field(default_factory=list)
    """``(time, *columns)`` of the tuples that are not late, in their order."""
    newest: int | None = None
    arrivals: list[int] = field(default_factory=list)

    @property
    def contents(self) -> list[Row]:
        """The columns of the tuples."""
        return [row[1:] for row in self.rows]

    @property
    def watermark(self) -> int | None:
        """From when on tuples may still come."""
        return None if self.newest is None else self.newest - round((self.stream.lateness or 0.0) * SECOND)

    def append(self, rows: list[Row], arrival: int) -> None:
        """Takes rows in that are in time."""
        if self.stream.event_time is None:
            self.rows += [(arrival, *row) for row in rows]
            self.arrivals += [arrival] * len(rows)
            self.newest = arrival
            return
        for row in rows:
            limit = self.watermark
            if limit is None or row[0] >= limit:
                self.rows.append((row[0], *row))
                self.arrivals.append(arrival)
                self.heartbeat(row[0])

    def heartbeat(self, time: int) -> None:
        """Time has come so far."""
        self.newest = time if self.newest is None else max(self.newest, time)
