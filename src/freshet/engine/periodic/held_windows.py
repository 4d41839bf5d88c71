"""A bound on what windows of periodic queries hold of a stream: the bound of the stream itself.

What is more is let go, the oldest first, and the ledger says so when a release is taken. It holds for the releases
after that: those that were taken before see what they saw. So an answer stays a function of log and ledger, also after
a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from freshet.engine.protocols import QueueLog
from freshet.engine.states import EdgeState
from freshet.model import Missing

_WHY: Final = "its window holds more than the bound of the stream"
_MOST: Final = 1000
"""Number of times at which an edge let something go that are remembered: an instance waits for no longer."""


class _Gone(NamedTuple):
    """Tuples in front of an offset, which releases after a time (in microseconds) do not see any more."""

    time: int
    end: int


class HeldWindows:
    """What the windows of a query have let go, by edge.

    Args:
        query: Its name.
        edges: Its edges from streams and outputs.
        log: The engine's.
    """

    def __init__(self, query: str, edges: Sequence[EdgeState], log: QueueLog) -> None:
        self._query, self._log = query, log
        self._edges = [edge for edge in edges if edge.window is not None and not edge.window.passes]
        self._gone: dict[str, list[_Gone]] = {edge.edge.reader: [] for edge in self._edges}
        for entry in log.lost(query) if self._edges else ():
            if entry.edge in self._gone:
                self._gone[entry.edge].append(_Gone(entry.since, entry.end))

    def first(self, reader: str, release: int) -> int:
        """The first offset of an edge that the instance of a release may see."""
        return max((each.end for each in self._gone.get(reader, ()) if each.time < release), default=0)

    def excess(self) -> Iterator[Missing]:
        """What is to be let go now, for the ledger."""
        for edge in self._edges:
            known = self.latest(edge.edge.reader)
            first = max(edge.cursor, known)
            end = self._log.held_from(edge.edge.stream, first)
            if end > first:
                name, stream = edge.edge.reader, edge.edge.stream
                yield Missing(self._query, name, stream, "lost", first, end, end - first, reason=_WHY)

    def latest(self, reader: str) -> int:
        """The first offset that has not been let go."""
        return max((each.end for each in self._gone.get(reader, ())), default=0)

    def let_go(self, entries: Iterable[Missing], now: int) -> None:
        """Takes in what the ledger has got at a time."""
        for entry in entries:
            if entry.query == self._query and entry.edge in self._gone:
                self._gone[entry.edge] = [*self._gone[entry.edge][-_MOST:], _Gone(now, entry.end)]
