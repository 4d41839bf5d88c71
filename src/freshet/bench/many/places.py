"""How far the queries of ``freshet bench many`` have come, as the engine of Freshet's side reports it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from freshet.bench.many.queries import STREAM, ManyQuery
from freshet.engine import Event
from freshet.engine.events import Committed


class Reached(NamedTuple):
    """A moment, and how many rows of the stream each query has answered by then."""

    time: float
    places: tuple[int, ...]

    @property
    def least(self) -> int:
        """The number of the slowest query."""
        return min(self.places, default=0)


class QueryProgress:
    """An observer that notes after every commit how far each query has come; each reads only the stream.

    Args:
        queries: The queries.
    """

    def __init__(self, queries: Sequence[ManyQuery]) -> None:
        self._places = dict.fromkeys((query.name for query in queries), 0)
        self.commits = [Reached(-math.inf, tuple(self._places.values()))]

    def tell(self, event: Event) -> None:
        """Takes an event."""
        if isinstance(event, Committed):
            for chain in event.chains:
                ends = [train.end for train in chain.trains if train.stream == STREAM]
                self._places |= {name: max(ends) for name in chain.writes if ends and name in self._places}
            self.commits.append(Reached(event.now, tuple(self._places.values())))
