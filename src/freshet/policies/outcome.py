"""What a policy is told of an instance of a periodic query that ended."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.model import ChainResult, Instance


@dataclass(frozen=True, slots=True)
class InstanceOutcome:
    """An instance that was answered or abandoned.

    Args:
        instance: What the log knows of it.
        seconds: For how long the loop was at its unit: from when it turned to it until its result was there.
        overhead: Seconds of that before the unit touched a tuple.
        chains: What its chains did; those with several inputs say how many tuples came in at each port.
        together: Number of instances in the unit.
        settling: Seconds from then until its answer was committed; meanwhile others run.

    >>> InstanceOutcome(Instance("q", 0, 1_000_000, {}, finished=1_500_000), 0.5, 0.1, ()).lateness
    0.5
    """

    instance: Instance
    seconds: float
    overhead: float
    chains: tuple[ChainResult, ...]
    together: int = 1
    settling: float = 0.0

    @property
    def lateness(self) -> float:
        """Seconds from its deadline to its end; negative if it was in time."""
        return (self.instance.finished - self.instance.deadline) / 1e6
