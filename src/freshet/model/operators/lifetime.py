"""How long tuples count."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.model.operators.words import span_text, time_text


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
