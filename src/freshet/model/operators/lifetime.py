"""How long tuples count, and words for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lifetime:
    """From when until when the tuples of an input count, in microseconds.

    Args:
        time: Timestamp (or bigint of microseconds) column of the event time; None: the arrival.
        size: How long a tuple is valid; None: ``until`` says it.
        until: Column (bigint, microseconds) with the end of its validity.

    >>> Lifetime("ts", 60_000_000).text(), Lifetime("ts", 60_000_000).for_how_long()
    ('1 min of ts', 'for 1 min')
    """

    time: str | None
    size: int | None = None
    until: str | None = None

    def text(self) -> str:
        """What it is counted by, for people."""
        return (
            f"{self.time} to {self.until}" if self.size is None else f"{span_text(self.size)} of {time_text(self.time)}"
        )

    def for_how_long(self) -> str:
        """How long a tuple is remembered, for people."""
        return f"until {self.until}" if self.size is None else f"for {span_text(self.size)}"


def span_text(microseconds: int) -> str:
    """A duration, exactly.

    >>> span_text(100_000_000), span_text(7_200_000_000), span_text(1_500)
    ('100 s', '2 h', '1500 us')
    """
    units = ((3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))
    size, unit = next((size, unit) for size, unit in units if microseconds % size == 0)
    return f"{microseconds // size} {unit}"


def time_text(time: str | None) -> str:
    """A column of times; None: the arrival."""
    return "arrival" if time is None else time
