"""Levels at random: instances that keep a share of what they see, and some that run in parts and end before that."""

from __future__ import annotations

import random
from collections.abc import Sequence

from freshet.model import InstanceView, View
from freshet.model.promises.keep import Timing
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel

_SHARES = (1.0, 1.0, 0.8, 0.5, 0.2)
_TIMINGS = (None, Timing(1.0, 1.0), Timing(1.0, 0.3), Timing(0.5, 2.0))


class DrawnLevels:
    """Gives each instance other shares of its inputs, and now and then little time.

    Args:
        seed: Draws them.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"levels {seed}")

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Nothing to note."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        """Nothing to note."""

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        return {each.key: self._level(each) for each in chosen}

    def _level(self, instance: InstanceView) -> InstanceLevel:
        kept = {each.reader: self._random.choice(_SHARES) for each in instance.inputs}
        return InstanceLevel(kept, min(kept.values()), timing=self._random.choice(_TIMINGS))


class DrawnStopwatch:
    """Each part takes a time of its own.

    Args:
        seed: Draws them.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"stopwatch {seed}")
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self._random.choice((0.01, 0.1, 0.3, 0.6, 1.2))
        return self._now
