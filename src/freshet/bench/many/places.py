"""How far the queries of ``freshet bench many`` are, as the engine of Freshet's side tells it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from freshet.bench.many.queries import STREAM, ManyQuery
from freshet.engine import Event
from freshet.engine.events import Committed


class Reached(NamedTuple):
    """A moment, and how many rows of the stream each query has answered then."""

    time: float
    places: tuple[int, ...]

    @property
    def least(self) -> int:
        """Of the slowest query."""
        return min(self.places, default=0)


class Places:
    """An observer that notes after every commit how far each query is; each reads the stream, and nothing else.

    Args:
        queries: The queries.
    """

    def __init__(self, queries: Sequence[ManyQuery]) -> None:
        self._places = dict.fromkeys((query.name for query in queries), 0)
        self.commits = [Reached(-math.inf, tuple(self._places.values()))]

    def tell(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Committed):
            for chain in event.chains:
                ends = [train.end for train in chain.trains if train.stream == STREAM]
                self._places |= {name: max(ends) for name in chain.writes if ends and name in self._places}
            self.commits.append(Reached(event.now, tuple(self._places.values())))
