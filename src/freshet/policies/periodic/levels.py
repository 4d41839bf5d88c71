"""Levels: how much of its windows an instance keeps, so that all are in time (RT §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from freshet.model import InstanceView, View
from freshet.model.promises.keep import Timing
from freshet.policies.outcome import InstanceOutcome


@dataclass(frozen=True, slots=True)
class InstanceLevel:
    """What an instance keeps.

    Args:
        kept: Share of the tuples, by the name of the edge's cursor; other edges keep everything.
        quality: What its answer is worth then.
        seconds: How long it is expected to take.
        timing: How long its operators are expected to take, and may take; None: nobody minds.
    """

    kept: Mapping[str, float] = field(default_factory=dict)
    quality: float = 1.0
    seconds: float = 0.0
    timing: Timing | None = None


class LevelManager(Protocol):
    """Decides on levels, from what it sees of instances and of those that ended."""

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Instances were released."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        """An instance was answered or abandoned."""

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> Mapping[tuple[str, int], InstanceLevel]:
        """The levels of the instances that are about to run, by key."""
