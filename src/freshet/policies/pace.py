"""How often figures that are learned from runs are worked out again."""

from __future__ import annotations

from typing import Final

_RUNS_PER_ENTRY: Final = 8


class Pace:
    """Says when kept figures are due to be worked out again: the first ones soon, because first costs change much.
    Later it takes some runs for each of them, so that working out all of them costs little per run.

    >>> pace = Pace()
    >>> [pace.is_due(1, entries=4) for _ in range(8)]
    [True, False, False, False, True, False, False, False]
    """

    __slots__ = ("_ran", "_total")

    def __init__(self) -> None:
        self._ran = 0
        self._total = 0

    def is_due(self, runs: int, entries: int) -> bool:
        """Counts runs; whether all kept figures, so many ``entries``, should now be worked out again."""
        self._ran += runs
        if self._ran <= min(3 * self._total, _RUNS_PER_ENTRY * entries):
            return False
        self.restart()
        return True

    def restart(self) -> None:
        """All figures are worked out again now."""
        self._total += self._ran
        self._ran = 0
