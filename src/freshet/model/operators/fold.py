"""Folds: operators that remember. Their memory is a range of a log of their own, so that it is committed, replayed
and bounded like everything else that waits.

A fold works on plain columns: the projection in front of it has computed its keys, arguments and times, filters and a
projection behind it compute what the query asks for from what it gives out. Times are columns of timestamps, or the
arrival where a column's name is None. Every input tuple is *valid* from its time until its window has passed it:
``[time, time + size)``, or up to a column that says so. That one idea carries windows, slides and joins: two tuples
join if they are valid at the same time, and a tuple counts at a boundary ``b`` if ``time < b <= until``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from freshet.model.operators.base import Operator, Split


@dataclass(frozen=True, slots=True)
class Fold(Operator):
    """An operator that remembers."""

    remembers: ClassVar[bool] = True

    @property
    def split(self) -> Split:
        return "never"

    @abstractmethod
    def state_text(self) -> str:
        """What it remembers, and for how long."""
