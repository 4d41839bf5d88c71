"""What happens in the demo, and when: calm traffic, a flood, calm again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

Phase = Literal["calm", "flood", "after the flood"]

CALM: Final = 0.25
"""Calm traffic, as a share of what the machine sustains."""
SWING: Final = 0.4
"""The share of itself by which calm traffic goes up and down, every second."""
FLOOD: Final = 3.0
"""The flood, as a multiple of what the machine sustains."""
GAP: Final = 1.0
"""Seconds between bursts in calm traffic: all packets of that time come together."""


@dataclass(frozen=True, slots=True)
class Story:
    """The plot of the demo.

    Args:
        seconds: How long packets come; after that, what waits is answered.
        sustained: Packets a second that the machine sustains.

    >>> story = Story(seconds=40, sustained=1000)
    >>> story.flood_start, story.flood_end, story.flood_rate, story.phase(3), story.phase(12)
    (10.0, 15.0, 3000.0, 'calm', 'flood')
    """

    seconds: float
    sustained: float

    @property
    def flood_start(self) -> float:
        """When the flood begins."""
        return 0.25 * self.seconds

    @property
    def flood_end(self) -> float:
        """When it ends."""
        return 0.375 * self.seconds

    @property
    def calm_rate(self) -> float:
        """Packets a second when it is calm."""
        return CALM * self.sustained

    @property
    def flood_rate(self) -> float:
        """Packets a second in the flood."""
        return FLOOD * self.sustained

    @property
    def burst(self) -> int:
        """Number of packets that come together."""
        return max(1, round(GAP * self.calm_rate))

    def phase(self, time: float) -> Phase:
        """What happens at a time."""
        if time < self.flood_start:
            return "calm"
        return "flood" if time < self.flood_end else "after the flood"

    def arrival(self) -> dict[str, Any]:
        """The arrival process of the packets, as an option of their source."""
        pieces = [
            *self._calm(0.0, self.flood_start),
            (self.flood_end - self.flood_start, self.flood_rate),
            *self._calm(self.flood_end, self.seconds),
        ]
        return {"kind": "schedule", "burst": self.burst, "repeat": False, "pieces": pieces}

    def _calm(self, start: float, end: float) -> list[tuple[float, float]]:
        """Pieces of about a second each, in turn above and below the mean, equally many of both."""
        count = 2 * max(1, round((end - start) / 2))
        ends = [start + (end - start) * number / count for number in range(count + 1)]
        swings = (1 - SWING, 1 + SWING)
        return [(high - low, self.calm_rate * swings[number % 2]) for number, (low, high) in enumerate(pairwise(ends))]
